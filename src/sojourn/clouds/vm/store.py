"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.clouds.vm.containers import ancestors, overlap
from sojourn.clouds.vm.paths import NAMES, OWNER, OWNERS
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.waiting import PATIENCE, until_known
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError
from sojourn.core.untrusted import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.clouds.vm.task_context import TaskContext
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Resource
    from sojourn.storage.store import Store

__all__ = ["Folder", "OwnBucket", "StoreOf"]

C = TypeVar("C", bound="TaskContext[Any, Any, Any]")


class OwnBucket(TaskResource[C]):
    """A bucket of the task's own. A cloud looks at it, makes it and removes it."""

    stage = 0
    kind = "bucket"
    _unknown = False  # made just now, and not known everywhere yet

    def create(self, ctx: Context) -> None:
        self._make(ctx)
        self._context.locations.claim(self._name)
        self._unknown = True
        until_known(ctx, self._look)
        self._unknown = False

    def delete(self, ctx: Context) -> None:
        try:
            self._context.ensure_ours()
        except Conflict as error:
            ctx.warn(error.message)
            return
        if not self._deleted(ctx):
            patience = ctx.within(PATIENCE)  # emptying alone may take as long as it takes
            patience.sleep(1)
            while not self._deleted(ctx):
                patience.sleep(1)
        self._context.locations.forget(self._context.id)

    def _deleted(self, ctx: Context) -> bool:
        try:
            self._remove(ctx)
        except Conflict:
            return False  # somebody wrote to it meanwhile
        except NotFound:
            return not self._unknown
        return True

    def _is_strange(self) -> bool:
        """Whether it is somebody else's. Then it is nothing of a task that is not known; that of
        one which is raises Conflict."""
        try:
            self._context.ensure_ours()
        except Conflict:
            if self._context.task is None:
                return True
            raise
        return False

    def _look(self) -> object:
        """Absent: raises NotFound."""
        raise NotImplementedError

    def _make(self, ctx: Context) -> None:
        """One that is there already and ours is no error."""
        raise NotImplementedError

    def _remove(self, ctx: Context) -> None:
        """With all that is in it."""
        raise NotImplementedError


class Folder(TaskResource[C]):
    """Our things in a bucket that the user has. Beside them may be others: these are left alone."""

    stage = 0
    kind = "folder of"

    def find(self) -> bool:
        return self._is_signed() or self._owner() == self._name

    def create(self, ctx: Context) -> None:
        self._refuse_others()
        self._refuse_neighbours()
        self._sign(ctx)
        if not self._context.store().put_new(OWNER, self._name.encode()):
            self._unsign(ctx)
            self._refuse_others()

    def _refuse_others(self) -> None:
        ours, owner = self._ours(), self._owner()
        if (ours and not owner) or owner not in ("", self._name):
            there = f"the task {owner}" if owner else ", ".join(ours)
            raise Conflict(
                f"The container already holds {there}",
                hint="Set storage.container to another path.",
            )

    def _refuse_neighbours(self) -> None:
        """What is inside the folder of another task is written and removed by that one."""
        location = self._context.location
        for folder in ancestors(location.folder):
            with suppress(AuthError):  # one who may use no more than this folder
                self._refuse_overlap(_owner_of(self._context.store_in(folder)), folder)
        if location.folder == self._name:
            return  # nobody else has a folder of this name
        with suppress(AuthError):
            for other, folder in self._context.locations.beside(location).items():
                if overlap(location.folder, folder):
                    self._refuse_overlap(str(other), folder)

    def _refuse_overlap(self, other: str, folder: str) -> None:
        if other not in ("", self._name):
            raise Conflict(
                f"The container overlaps with that of the task {other}: "
                f"{_called(self._context.location.folder)} and {_called(folder)}",
                hint="Set storage.container to a path beside it.",
            )

    def delete(self, ctx: Context) -> None:
        try:
            if self._owner() == self._name:
                # What tells that it is ours goes last.
                for path in sorted(self._ours(), key=lambda path: path.endswith(OWNERS)):
                    self._empty(ctx, path)
            self._unsign(ctx)
        except NotFound:
            pass
        self._context.locations.forget(self._context.id)

    def _owner(self) -> str:
        """The id of the task that is there; none: empty."""
        return _owner_of(self._context.store())

    def _ours(self) -> list[str]:
        """What is there by names that we use, files and folders."""
        found = sorted(self._top())
        return [path for path in found if path.removeprefix(self._prefix).rstrip("/") in NAMES]

    @property
    def _prefix(self) -> str:
        """What the paths of `_top` begin with."""
        folder = self._context.location.folder
        return f"{folder}/" if folder else ""

    def _top(self) -> set[str]:
        """The whole paths of all that is in the folder itself, in any version; folders with `/`."""
        raise NotImplementedError

    def _empty(self, ctx: Context, path: str) -> None:
        """Remove an object, or all of a folder, in all versions."""
        raise NotImplementedError

    def _sign(self, ctx: Context) -> None:
        """Have those who look for tasks find this one; comes first and goes last."""
        raise NotImplementedError

    def _is_signed(self) -> bool:
        """Whether they do."""
        raise NotImplementedError

    def _unsign(self, ctx: Context) -> None:
        """Take that back. Can be repeated."""
        raise NotImplementedError


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

    def __init__(
        self, context: C, own: Callable[[C], Resource], contained: Callable[[C], Resource]
    ) -> None:
        def choose() -> Resource:
            return (contained if context.location.contained else own)(context)

        self._name = context.name
        self._choose = choose
        self._made: Resource | None = None  # which knows that others may not know it yet

    @property
    def title(self) -> str:
        try:
            return self._choose().title
        except SojournError:
            return f"store of {self._name}"

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
