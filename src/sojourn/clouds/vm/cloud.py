"""A cloud of machines that boot, as far as it is the same whose they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sojourn.core.errors import InvalidInput
from sojourn.core.interfaces import Data, Features, Reach, Scaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sojourn.clouds.vm.known import Known
    from sojourn.clouds.vm.task_context import Offers, TaskContext
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["VmCloud", "check_limits"]


class Account(Protocol):
    """What calls are made with."""

    def address(self) -> str:
        """As `Cloud.address`."""


A = TypeVar("A", bound=Account)
K = TypeVar("K", bound="Known[Any]")
S = TypeVar("S", bound="Offers[Any]")


def check_limits(task: Task, most: Mapping[str, int]) -> None:
    """Refuse what is beyond the cloud's own limits, by field."""
    for field, limit in most.items():
        if getattr(task, field) > limit:
            raise InvalidInput(field, f"must be at most {limit}, got {getattr(task, field)}")


class VmCloud(Generic[A, K, S]):
    """What makes and finds tasks is imported where it is used: most commands do neither."""

    features = Features(
        warm=True,
        private_machines=True,
        shared_identity=True,
        poll=2.0,
    )

    def __init__(self, account: A, locations: K, offers: S, name: str) -> None:
        self.name = name
        self._account = account
        self._locations = locations
        self._offers = offers

    def address(self) -> str:
        return self._account.address()

    def check_form(self, task: Task) -> None:
        raise NotImplementedError

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        for told in self._check_permission_set(task):
            ctx.warn(told)
        self._check_places(task)
        notes = self._offers.check(task)
        if replaced := self._offers.replaced(task):
            ctx.warn(replaced)
        return notes

    def _check_permission_set(self, task: Task) -> list[str]:
        """Refuse one that is not there or lacks rights, if we may know; returns warnings."""
        raise NotImplementedError

    def _check_places(self, task: Task) -> None:
        """Refuse a container that is not there, or not ours to use."""
        self._locations.check(task)

    def scaler(self, id: TaskId) -> Scaler:
        raise NotImplementedError

    def data(self, id: TaskId) -> Data:
        from sojourn.storage.data import StoreData

        return StoreData(self._context_of(id, None).store)

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.vm.reach import SshReach

        store = self._context_of(id, None).store
        return SshReach(self.scaler(id), store, machine, self._offers.user_of)

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        yield from sorted(self._locations.tasks())

    def _context_of(self, id: TaskId, task: Task | None) -> TaskContext[Any, Any, Any]:
        raise NotImplementedError
