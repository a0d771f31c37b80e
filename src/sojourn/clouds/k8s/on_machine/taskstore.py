"""The store as the agent sees it: what the task is comes from the Secret, all else from the store.

So a machine cannot change what laptops believe of a task, whatever it writes.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sojourn.clouds.k8s.on_machine.packing import unpacked
from sojourn.core.errors import NotFound
from sojourn.storage import layout
from sojourn.storage.store import MOST, ObjectInfo

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.storage.store import Buffer, Store

__all__ = ["TaskStore"]

_FROM_SECRET = (layout.TASK, layout.ENVIRONMENT)


class TaskStore:
    """A store with two of its objects in a folder."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        if path not in _FROM_SECRET:
            return self._store.get(path, most=most)
        try:
            found = (self._folder / path).read_bytes()
            return memoryview(unpacked(found) if path == layout.TASK else found)
        except FileNotFoundError as error:
            raise NotFound(f"{path} not found in the Secret") from error

    def head(self, path: str) -> ObjectInfo | None:
        if path not in _FROM_SECRET:
            return self._store.head(path)
        file = self._folder / path
        if not file.is_file():
            return None
        info = file.stat()
        return ObjectInfo(path, info.st_size, datetime.fromtimestamp(info.st_mtime, timezone.utc))

    def stream(self, path: str) -> Iterator[memoryview]:
        return self._store.stream(path)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        return self._store.get_ranges(path, ranges)

    def put(self, path: str, data: Buffer) -> None:
        self._store.put(path, data)

    def put_new(self, path: str, data: Buffer) -> bool:
        return self._store.put_new(path, data)

    def keep(self, paths: Sequence[str]) -> None:
        self._store.keep(paths)

    def copy(self, source: str, target: str) -> None:
        self._store.copy(source, target)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        return self._store.list(prefix, after)

    def delete(self, paths: Sequence[str]) -> None:
        self._store.delete(paths)
