"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from sojourn.clouds.vm.containers import ancestors, overlap
from sojourn.clouds.vm.paths import NAMES, OWNER, OWNERS
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError
from sojourn.core.untrusted import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Resource
    from sojourn.storage.store import Store

__all__ = ["Container", "Folder", "StoreOf"]


class Container(Protocol):
    """What a cloud supplies for a folder in a bucket that the user has."""

    def store(self) -> Store:
        """The folder as a store."""

    def folder(self) -> str:
        """The path of the folder in the bucket; all of the bucket: empty."""

    def store_in(self, folder: str) -> Store:
        """Another folder of the bucket as a store."""

    def neighbours(self) -> Mapping[TaskId, str]:
        """The folders of other tasks in the bucket, as far as this user may know them."""

    def top(self) -> list[str]:
        """The whole paths of all that is in the folder itself, in any version; folders with `/`."""

    def name(self, path: str) -> str:
        """The last part of such a path."""

    def empty(self, ctx: Context, path: str) -> None:
        """Remove an object, or all of a folder, in all versions."""

    def sign(self, ctx: Context) -> None:
        """Have those who look for tasks find this one; comes first and goes last."""

    def is_signed(self) -> bool:
        """Whether they do."""

    def unsign(self, ctx: Context) -> None:
        """Take that back. Can be repeated."""

    def forget(self) -> None:
        """It is gone."""


class Folder:
    """Our things in a bucket that the user has. Beside them may be others: these are left alone."""

    stage = 0

    def __init__(self, id: TaskId, container: Container) -> None:
        self._id = str(id)
        self._container = container

    @property
    def title(self) -> str:
        return f"folder of {self._id}"

    def read(self, ctx: Context) -> bool:
        try:
            return self._container.is_signed() or self._owner() == self._id
        except NotFound:
            return False

    def create(self, ctx: Context) -> None:
        self._refuse_others()
        self._refuse_neighbours()
        self._container.sign(ctx)
        if not self._container.store().put_new(OWNER, self._id.encode()):
            self._container.unsign(ctx)
            self._refuse_others()

    def _refuse_others(self) -> None:
        ours, owner = self._ours(), self._owner()
        if (ours and not owner) or owner not in ("", self._id):
            there = f"the task {owner}" if owner else ", ".join(ours)
            raise Conflict(
                f"The container already holds {there}",
                hint="Set storage.container to another path.",
            )

    def _refuse_neighbours(self) -> None:
        """What is inside the folder of another task is written and removed by that one."""
        own = self._container.folder()
        for folder in ancestors(own):
            with suppress(AuthError):  # one who may use no more than this folder
                self._refuse_overlap(_owner_of(self._container.store_in(folder)), folder)
        if own == self._id:
            return  # nobody else has a folder of this name
        with suppress(AuthError):
            for other, folder in self._container.neighbours().items():
                if overlap(own, folder):
                    self._refuse_overlap(str(other), folder)

    def _refuse_overlap(self, other: str, folder: str) -> None:
        if other not in ("", self._id):
            raise Conflict(
                f"The container overlaps with that of the task {other}: "
                f"{_called(self._container.folder())} and {_called(folder)}",
                hint="Set storage.container to a path beside it.",
            )

    def delete(self, ctx: Context) -> None:
        try:
            if self._owner() == self._id:
                # What tells that it is ours goes last.
                for path in sorted(self._ours(), key=lambda path: path.endswith(OWNERS)):
                    self._container.empty(ctx, path)
            self._container.unsign(ctx)
        except NotFound:
            pass
        self._container.forget()

    def _owner(self) -> str:
        """The id of the task that is there; none: empty."""
        return _owner_of(self._container.store())

    def _ours(self) -> list[str]:
        """What is there by names that we use, files and folders."""
        found = self._container.top()
        return sorted(path for path in found if self._container.name(path).rstrip("/") in NAMES)


def _owner_of(store: Store) -> str:
    try:
        return bytes(store.get(OWNER, most=LARGEST)).decode(errors="replace")
    except NotFound:
        return ""


def _called(folder: str) -> str:
    return folder or "the whole bucket"


class StoreOf:
    """Whichever of the two a task has."""

    stage = 0

    def __init__(self, id: TaskId, choose: Callable[[], Resource]) -> None:
        """`choose` raises NotFound for a task that is nowhere."""
        self._id = str(id)
        self._choose = choose
        self._made: Resource | None = None  # which knows that others may not know it yet

    @property
    def title(self) -> str:
        try:
            return self._choose().title
        except SojournError:
            return f"store of {self._id}"

    def read(self, ctx: Context) -> bool:
        try:
            return self._choose().read(ctx)
        except NotFound:
            return False

    def create(self, ctx: Context) -> None:
        self._made = self._choose()
        self._made.create(ctx)

    def delete(self, ctx: Context) -> None:
        try:
            (self._made or self._choose()).delete(ctx)
        except NotFound:
            return  # nothing tells of it any more
