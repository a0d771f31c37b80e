"""The local cloud as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.local import folders
from sojourn.clouds.local.folders import TaskFolders
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Data, Features, Resource, Scaler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from sojourn.clouds.local.scaler import LocalScaler
    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["LocalCloud"]


class LocalCloud:
    """Tasks on this computer."""

    name = "local"
    features = Features(interrupt=True, poll=0.1)

    def __init__(self, data_root: Path, machines_root: Path) -> None:
        self._data_root = data_root
        self._machines_root = machines_root

    @classmethod
    def from_environment(cls) -> LocalCloud:
        return cls(folders.data_root(), folders.machines_root())

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        if task.storage.container:
            raise InvalidInput(
                "storage.container",
                "the local cloud keeps every task in a folder of its own; remove it",
            )
        plain = type(task)(script=task.script)
        ignored = [
            name
            for name in ("machine", "image", "region", "disk_size", "spot", "permission_set")
            if getattr(task, name) != getattr(plain, name)
        ]
        if ignored:
            yield (
                f"The local machine is what it is: {', '.join(ignored)} "
                f"{'has' if len(ignored) == 1 else 'have'} no effect on it"
            )

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.local.resources import StoreFolder

        return (StoreFolder(self._folders(id).store, self._data_root), self._scaler(id, task))

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(id, None)

    def data(self, id: TaskId) -> Data:
        # Imported here, as in `_scaler`: `sojourn list` without tasks has no use for them.
        from sojourn.clouds.local.store import FolderStore
        from sojourn.storage.data import StoreData

        return StoreData(lambda: FolderStore(self._folders(id).store, id))

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        if not self._data_root.is_dir():
            return
        for folder in sorted(self._data_root.iterdir()):
            try:
                yield TaskId.parse(folder.name)
            except InvalidInput:
                continue  # not ours

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        return {}  # a closer look costs nothing here

    def _folders(self, id: TaskId) -> TaskFolders:
        return TaskFolders(self._data_root / str(id))

    def _scaler(self, id: TaskId, task: Task | None) -> LocalScaler:
        from sojourn.clouds.local.scaler import LocalScaler

        return LocalScaler(self._folders(id), self._machines_root / str(id), id, task)
