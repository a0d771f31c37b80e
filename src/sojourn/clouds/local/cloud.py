"""The local cloud as a list of resources."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING

from sojourn.core.argument import arguments_of
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.images import container_image, made_image
from sojourn.core.interfaces import Data, Features, Reach, Resource, Scaler
from sojourn.core.task import DEFAULT_REGION, Task
from sojourn.host.folders import TaskFolders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sojourn.clouds.local.locations import Roots
    from sojourn.clouds.local.scaler import LocalScaler
    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.storage.store import Store

__all__ = ["LocalCloud"]

_LAUNCHED = re.compile(r"^exec (mpirun|mpiexec)\b", re.MULTILINE)
_LAUNCHERS = re.compile(r"(?<![\w./-])(mpirun|mpiexec)\b")
_SIZES = ("s", "m", "l", "xl")  # what may be typed for any cloud; others have their own types


class LocalCloud:
    """Tasks on this computer."""

    features = Features(
        warm=True,
        poll=0.1,
        instead_of_images="Nothing is needed: tasks use what is installed on this computer.",
    )

    def __init__(self, roots: Roots, name: str = "local") -> None:
        self.name = name
        self._data_root = roots.tasks
        self._machines_root = roots.machines

    def address(self) -> str:
        return os.path.realpath(self._data_root)

    def check_form(self, task: Task) -> None:
        size = task.machine.partition("+")[0]
        if size and not set(size) - set("smlx") and size not in _SIZES:
            raise InvalidInput(
                "machine", f"unknown machine type {task.machine!r}; sizes are {', '.join(_SIZES)}"
            )
        if task.storage.container:
            raise InvalidInput(
                "storage.container",
                "not supported by the local cloud; remove it",
            )
        if container_image(task.image) or made_image(task.image):
            raise InvalidInput(
                "image",
                "images are not supported by the local cloud, which runs scripts on this computer; "
                "remove it",
            )

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        for variable, root in (
            ("XDG_DATA_HOME", self._data_root),
            ("XDG_CACHE_HOME", self._machines_root),
        ):
            existing = next(path for path in (root, *root.parents) if path.exists())
            if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
                raise InvalidInput(
                    "cloud",
                    f"the cloud {self.name} cannot write to {existing}; make it writable, "
                    f"or set {variable} to another folder",
                )
        yield from _mpi_notes(task)
        plain = Task(task.script, region=DEFAULT_REGION)
        rented = [name for name, each in arguments_of(Task).items() if each.of_machine]
        ignored = [name for name in rented if getattr(task, name) not in ("", getattr(plain, name))]
        if ignored:
            yield f"Ignoring {', '.join(ignored)}: the local cloud runs on this computer"

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.local.resources import StoreFolder

        return (StoreFolder(self._folders(id).store, self._data_root), self._scaler(id, task))

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(id, None)

    def data(self, id: TaskId) -> Data:
        # Imported here, as in `_scaler`: `sojourn list` without tasks has no use for them.
        from sojourn.storage.data import StoreData

        return StoreData(partial(self._store, id), near=True)

    def _store(self, id: TaskId) -> Store:
        from sojourn.storage.store import StoreAddress, open_store

        folder = self._folders(id).store
        if not folder.is_dir():
            raise NotFound.task(id)
        return open_store(StoreAddress(f"file://{folder}"))

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.local.reach import LocalReach

        store, folder = partial(self._store, id), self._machines_root / str(id) / machine
        return LocalReach(self._scaler(id, None), store, machine, folder)

    def images(self) -> None:
        return None

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        if not self._data_root.is_dir():
            return
        for folder in sorted(self._data_root.iterdir()):
            try:
                yield TaskId.parse(folder.name)
            except InvalidInput:
                continue  # not ours

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        if not ids:
            return {}
        from sojourn.clouds.local.listing import states  # not free, and often there are no tasks

        return states(ctx, self._data_root, ids)

    def _folders(self, id: TaskId) -> TaskFolders:
        return TaskFolders(self._data_root / str(id))

    def _scaler(self, id: TaskId, task: Task | None) -> LocalScaler:
        from sojourn.clouds.local.scaler import LocalScaler

        return LocalScaler(self._folders(id), self._machines_root / str(id), id, task)


def _mpi_notes(task: Task) -> Iterable[str]:
    """Refuse a command that starts with a launcher which this computer lacks.

    Other scripts may bring one along, or load a module that does: of them, it is only told.
    """
    from sojourn.clouds.local.launcher import HOW_TO_INSTALL, find_launcher

    found = _LAUNCHERS.search(task.script) if task.mpi else None
    if found and not find_launcher(found[1], task.environment.get("PATH")):
        missing = f"{found[1]} not found on this computer"
        if _LAUNCHED.search(task.script):
            raise InvalidInput("mpi", f"{missing}; {HOW_TO_INSTALL}")
        yield f"{missing}: unless the script brings it along, {HOW_TO_INSTALL}"
