"""The store of a task: a folder, and gone with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.storage.store import StoreAddress, open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.core.ids import TaskId
    from sojourn.storage.store import Buffer, ObjectInfo

__all__ = ["FolderStore"]


class FolderStore:
    """A store in a folder. Without the folder nothing is written: there is no task.

    Writing would make the folder anew, and so would those who follow a task that somebody deletes.
    """

    def __init__(self, folder: Path, id: TaskId) -> None:
        self._folder = folder
        self._id = id
        self._require()
        self._store = open_store(StoreAddress(f"file://{folder}"))

    def get(self, path: str) -> memoryview:
        return self._store.get(path)

    def stream(self, path: str) -> Iterator[memoryview]:
        return self._store.stream(path)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        return self._store.get_ranges(path, ranges)

    def put(self, path: str, data: Buffer) -> None:
        self._require()
        self._store.put(path, data)

    def put_new(self, path: str, data: Buffer) -> bool:
        self._require()
        return self._store.put_new(path, data)

    def copy(self, source: str, target: str) -> None:
        self._store.copy(source, target)  # where the source is, the folder is

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        return self._store.list(prefix, after)

    def head(self, path: str) -> ObjectInfo | None:
        return self._store.head(path)

    def delete(self, paths: Sequence[str]) -> None:
        self._store.delete(paths)

    def _require(self) -> None:
        if not self._folder.is_dir():
            raise NotFound(
                f"There is no task {self._id}", hint="`sojourn list` shows those there are."
            )
