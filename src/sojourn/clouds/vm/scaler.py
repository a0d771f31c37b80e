"""The cloud's own group that keeps the machines of a task alive, as far as all have it alike."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.clouds.vm.keys import key_pair
from sojourn.clouds.vm.problems import read_problems, unheard
from sojourn.clouds.vm.resource import TaskResource
from sojourn.core.errors import NotFound, SojournError, Transient
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.vm.task_context import TaskContext
    from sojourn.core.context import Context
    from sojourn.core.events import CloudEvent
    from sojourn.core.interfaces import Fleet, KeyPair
    from sojourn.core.task import Task

__all__ = ["VmScaler"]

C = TypeVar("C", bound="TaskContext[Any, Any, Any]")


class VmScaler(TaskResource[C]):
    """A group is what the cloud tells of it. `page`: where the docs say what machines may do."""

    stage = 3
    page = ""
    gone_within = 900.0  # seconds

    def find(self) -> bool:
        return self._group() is not None

    def _settled(self, ctx: Context) -> Any:
        """The group; one that is on its way out is waited for. Absent: None."""
        patience = ctx.within(self.gone_within)
        while True:
            group = self._group()
            if group is None or not self._is_going(group):
                return group
            patience.sleep(1)

    def scale(self, ctx: Context, machines: int) -> None:
        group = self._group()
        if group is None:
            raise NotFound(f"No {self.title} found")
        if not self._is_going(group):
            self._tell_stopped(ctx, group, not machines)
            self._scale(ctx, group, machines)
        elif machines:
            raise Transient(
                f"The {self.title} is being deleted", hint="Try again in a few minutes."
            )

    def _tell_stopped(self, ctx: Context, group: Any, stopped: bool) -> None:
        """For those who list tasks; without it they look closer."""
        if self._is_stopped(group) == stopped or (stopped and not self._size(group)):
            return
        with suppress(SojournError):
            self._mark_stopped(ctx, group, "yes" if stopped else "no")

    def fleet(self, ctx: Context) -> Fleet | None:
        raise NotImplementedError

    def events(self, ctx: Context) -> list[CloudEvent]:
        told = [*self._told(ctx), *read_problems(self._context.store)]
        return sorted(told, key=lambda event: event.time)

    def obstacle(self, ctx: Context) -> str:
        """What was last in the way; nothing, once a machine came after it."""
        try:
            found = self._in_the_way(ctx)
        except NotFound:
            return ""
        return found or unheard(ctx, self.fleet, self._context.store, self.page)

    def _problem_since(self, time: str) -> str:
        """The last one that a machine wrote down."""
        found = [e.description for e in read_problems(self._context.store) if e.time >= time]
        return found[-1] if found else ""

    def keys(self, ctx: Context) -> KeyPair | None:
        try:
            return key_pair(self._context.store(), self._context.id)
        except NotFound:
            return None

    def _task(self, ctx: Context) -> Task | None:
        try:
            return StoreData(self._context.store).load(ctx)
        except NotFound:
            return None

    def _group(self) -> Any:
        """Absent: None."""
        raise NotImplementedError

    def _is_going(self, group: Any) -> bool:
        """Whether it is being deleted, so that nothing can be changed."""
        raise NotImplementedError

    def _is_stopped(self, group: Any) -> bool:
        """Whether it says that somebody stopped it, and nobody started it since."""
        raise NotImplementedError

    def _mark_stopped(self, ctx: Context, group: Any, value: str) -> None:
        raise NotImplementedError

    def _size(self, group: Any) -> int:
        """How many machines it is to have."""
        raise NotImplementedError

    def _scale(self, ctx: Context, group: Any, machines: int) -> None:
        raise NotImplementedError

    def _told(self, ctx: Context) -> Sequence[CloudEvent]:
        """What the cloud tells of it."""
        raise NotImplementedError

    def _in_the_way(self, ctx: Context) -> str:
        """Nothing is known: empty."""
        raise NotImplementedError
