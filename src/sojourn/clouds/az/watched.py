"""A store whose storage account may be deleted meanwhile, by another command.

Then its name does not even resolve, and nothing tells that from an outage. So when the store does
not answer, Azure is asked whether the task is still there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from sojourn.core.errors import Transient
from sojourn.storage.objectinfo import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.storage.objectinfo import Buffer, ObjectInfo
    from sojourn.storage.store import Store

__all__ = ["TRIES", "WatchedStore"]

TRIES = 4  # of the store itself, before Azure is asked
_PATIENCE = 120.0  # seconds, in an outage
_PAUSE = 2.0

T = TypeVar("T")


class WatchedStore:
    """`look` raises NotFound if the task is gone."""

    def __init__(self, store: Store, look: Callable[[], object]) -> None:
        self._store = store
        self._look = look

    def _tried(self, do: Callable[[], T]) -> T:
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return do()
            except Transient:
                self._look()
                if time.monotonic() > give_up:
                    raise
            time.sleep(_PAUSE)

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        return self._tried(lambda: self._store.get(path, most=most))

    def stream(self, path: str) -> Iterator[memoryview]:
        return self._store.stream(path)

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        return self._tried(lambda: self._store.get_ranges(path, ranges))

    def put(self, path: str, data: Buffer) -> None:
        self._tried(lambda: self._store.put(path, data))

    def put_new(self, path: str, data: Buffer) -> bool:
        return self._tried(lambda: self._store.put_new(path, data))

    def keep(self, paths: Sequence[str]) -> None:
        self._store.keep(paths)

    def copy(self, source: str, target: str) -> None:
        self._tried(lambda: self._store.copy(source, target))

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        return self._tried(lambda: self._store.list(prefix, after))

    def head(self, path: str) -> ObjectInfo | None:
        return self._tried(lambda: self._store.head(path))

    def delete(self, paths: Sequence[str]) -> None:
        self._tried(lambda: self._store.delete(paths))
