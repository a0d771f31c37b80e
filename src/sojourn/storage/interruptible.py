"""A store far away, whose calls end when their caller does not want to wait any more.

A call of obstore returns when the store has answered, or after minutes of tries, and meanwhile
Python hears no signal. So it is made in a thread beside, and the caller looks at its context.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from queue import Empty
from typing import TYPE_CHECKING, TypeVar

from sojourn.core.daemons import Daemons, is_daemon
from sojourn.storage.objectinfo import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.core.context import Context
    from sojourn.storage.store import Buffer, ObjectInfo, Store

__all__ = ["Interruptible"]

_LOOK_UP_EVERY = 0.1  # seconds between looks at cancellation
_Result = TypeVar("_Result")


class Interruptible:
    """A store as one command sees it: each call raises what `ctx.check` does, and at once.

    In worker threads, which nobody waits for, calls are made directly: one that was given up
    meanwhile raises when it returns, before anything can be made of what it brought.
    """

    def __init__(self, store: Store, ctx: Context) -> None:
        self._store = store
        self._ctx = ctx

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        return self._call(partial(self._store.get, path, most=most))

    def stream(self, path: str) -> Iterator[memoryview]:
        pieces = self._store.stream(path)
        while (piece := self._call(partial(next, pieces, None))) is not None:
            yield piece

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        return self._call(partial(self._store.get_ranges, path, ranges))

    def put(self, path: str, data: Buffer) -> None:
        self._call(partial(self._store.put, path, data))

    def put_new(self, path: str, data: Buffer) -> bool:
        return self._call(partial(self._store.put_new, path, data))

    def keep(self, paths: Sequence[str]) -> None:
        self._call(partial(self._store.keep, paths))

    def copy(self, source: str, target: str) -> None:
        self._call(partial(self._store.copy, source, target))

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        return self._call(partial(self._store.list, prefix, after))

    def head(self, path: str) -> ObjectInfo | None:
        return self._call(partial(self._store.head, path))

    def delete(self, paths: Sequence[str]) -> None:
        self._call(partial(self._store.delete, paths))

    def _call(self, call: Callable[[], _Result]) -> _Result:
        if is_daemon():
            result = call()
            self._ctx.check()
            return result
        beside = Daemons(1)
        job = beside.submit(call)
        try:
            while True:
                with suppress(Empty):
                    beside.done.get(timeout=_LOOK_UP_EVERY)
                    return job.result()
                self._ctx.check()
        finally:
            beside.end(within=0)
