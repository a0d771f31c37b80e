"""A task and where it is: what all its resources share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from sojourn.clouds.vm.agent_files import Luggage
from sojourn.core.errors import NotFound
from sojourn.storage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.vm.known import Known
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.storage.store import Store, StoreAddress

__all__ = ["Location", "Offer", "Offers", "TaskContext"]


class Location(Protocol):
    """Where a task is, as each cloud has it."""

    @property
    def region(self) -> str:
        """The cloud's own name of it."""

    @property
    def bucket(self) -> str:
        """What the store is in, by a name that no other one has."""

    @property
    def folder(self) -> str:
        """Where the store is in the bucket; all of it: empty."""

    @property
    def contained(self) -> bool:
        """Whether the bucket is the user's."""


class _Image(Protocol):
    @property
    def architecture(self) -> str:
        """As the cloud calls it."""

    @property
    def pythons(self) -> Sequence[str]:
        """That it may have."""


class Offer(Protocol):
    """All that has to be found out before a task can be created."""

    @property
    def image(self) -> _Image:
        """What machines boot from."""


A = TypeVar("A")
L = TypeVar("L", bound=Location)
F = TypeVar("F", bound=Offer)
F_co = TypeVar("F_co", bound=Offer, covariant=True)


class Offers(Protocol[F_co]):
    """Finds out what a region offers, and remembers for the length of a command."""

    def check(self, task: Task) -> list[str]:
        """Refuse what is not there, and what does not fit; returns notes."""

    def find(self, task: Task) -> F_co:
        """What the task needs; refuses what is not there."""

    def replaced(self, task: Task) -> str:
        """What to tell if the task gets another machine than it names; empty: it does not."""

    def user_of(self, task: Task) -> str:
        """Whom the image of a task lets in by SSH."""


@dataclass(frozen=True)
class TaskContext(Generic[A, L, F]):
    """`task` is None when it is unknown."""

    ON_MACHINE: ClassVar[str] = ""  # the package of the cloud's own that runs there

    account: A
    locations: Known[L]
    offers: Offers[F]
    id: TaskId
    task: Task | None

    @property
    def name(self) -> str:
        """What all that is made for it is called."""
        return str(self.id)

    @property
    def location(self) -> L:
        """Where it is. Nowhere: raises NotFound."""
        return self.locations.of(self.id, self.task)

    @property
    def is_contained(self) -> bool:
        """Whether its store is in a bucket of the user; of one that is nowhere, nothing is."""
        try:
            return self.location.contained
        except NotFound:
            return False

    def require_task(self) -> Task:
        """The task, where it has to be known."""
        if self.task is None:
            raise ValueError("this verb needs the task")
        return self.task

    @property
    def offer(self) -> F:
        return self.offers.find(self.require_task())

    def luggage(self) -> Luggage:
        """What machines have to fetch."""
        image = self.offer.image
        architecture = "aarch64" if image.architecture.lower() == "arm64" else "x86_64"
        return Luggage(image.pythons, architecture, self.ON_MACHINE)

    def store(self) -> Store:
        """The task's store, with the user's own credentials."""
        return self.store_in(self.location.folder)

    def store_in(self, folder: str) -> Store:
        """Another folder in the bucket of the task's store."""
        if not self.location.contained:
            self.ensure_ours()
        return open_store(self._address(folder))

    def ensure_ours(self) -> None:
        """Refuse the task's own bucket if it belongs to somebody else: names are global."""
        raise NotImplementedError

    def _address(self, folder: str) -> StoreAddress:
        """Of a folder in the bucket, as seen from the laptop."""
        raise NotImplementedError
