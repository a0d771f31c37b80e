"""Stores that watch over their objects, and fail on purpose."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

from obstore.store import MemoryStore

from sojourn.core.errors import Transient
from sojourn.storage.objects import ObstoreStore
from sojourn.storage.store import MOST, Buffer, ObjectInfo, Store

__all__ = ["Crash", "Fault", "FaultyStore", "WatchedStore", "memory_store"]

_IMMUTABLE = re.compile(r"(?:.*/)?(?:objects|snapshots)/.*|(?:logs|reports)/.*")
_Result = TypeVar("_Result")


class Crash(BaseException):
    """The machine is gone; nothing catches this."""


class Fault(Enum):
    """What goes wrong with a call."""

    BEFORE = "an error before the effect"
    AFTER = "an error after the effect"
    CRASH_BEFORE = "a crash before the effect"
    CRASH_AFTER = "a crash after the effect"

    @property
    def crash(self) -> bool:
        return self in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)

    @property
    def after(self) -> bool:
        return self in (Fault.AFTER, Fault.CRASH_AFTER)


class WatchedStore:
    """Fails the test if an immutable object is ever given another content.

    `calls` are the names of all that was called, `put_paths` what was written.
    """

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._contents: dict[str, bytes] = {}
        self.calls: list[str] = []
        self.put_paths: list[str] = []
        self.got_paths: list[str] = []
        self.violations: list[str] = []

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        self.got_paths.append(path)
        return self._call("get", lambda: self._inner.get(path, most=most))

    def stream(self, path: str) -> Iterator[memoryview]:
        self.got_paths.append(path)
        return iter(self._call("stream", lambda: list(self._inner.stream(path))))

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        self.got_paths.append(path)
        return self._call("get_ranges", lambda: self._inner.get_ranges(path, ranges))

    def put(self, path: str, data: Buffer) -> None:
        def effect() -> None:
            self._watch(path, bytes(data))
            self._inner.put(path, data)

        self._call("put", effect)

    def put_new(self, path: str, data: Buffer) -> bool:
        def effect() -> bool:
            won = self._inner.put_new(path, data)
            if won:
                self._watch(path, bytes(data))
            return won

        return self._call("put_new", effect)

    def keep(self, paths: Sequence[str]) -> None:
        self._call("keep", lambda: self._inner.keep(paths))

    def copy(self, source: str, target: str) -> None:
        def effect() -> None:
            self._inner.copy(source, target)
            self._watch(target, bytes(self._inner.get(target)))

        self._call("copy", effect)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        return self._call("list", lambda: self._inner.list(prefix, after))

    def head(self, path: str) -> ObjectInfo | None:
        return self._call("head", lambda: self._inner.head(path))

    def delete(self, paths: Sequence[str]) -> None:
        self._call("delete", lambda: self._inner.delete(paths))

    def _watch(self, path: str, data: bytes) -> None:
        with self._lock:
            self.put_paths.append(path)
            known = self._contents.setdefault(path, data)
            if known != data and _IMMUTABLE.fullmatch(path):
                self.violations.append(path)
                raise AssertionError(f"{path} was overwritten with another content")

    def _call(self, name: str, effect: Callable[[], _Result]) -> _Result:
        with self._lock:
            self.calls.append(name)
        return effect()


class FaultyStore(WatchedStore):
    """Does `fault` at the `at`-th call that counts (from 0), and works at all others.

    After a crash nothing works any more: the machine is gone. `kinds`: which calls count.
    """

    def __init__(
        self, inner: Store, fault: Fault, at: int, *, kinds: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(inner)
        self._fault = fault
        self._at = at
        self._kinds = kinds
        self._count = 0
        self.struck = False
        self._dead = False

    def heal(self) -> None:
        """No more faults."""
        self._at = -1

    def _call(self, name: str, effect: Callable[[], _Result]) -> _Result:
        with self._lock:
            if self._dead:
                raise Crash
            strikes = False
            if not self._kinds or name in self._kinds:
                strikes = self._count == self._at
                self._count += 1
            self.struck = self.struck or strikes
            self._dead = strikes and self._fault is Fault.CRASH_BEFORE
        if strikes and not self._fault.after:
            raise self._error()
        result = super()._call(name, effect)
        if strikes:
            self._dead = self._fault.crash
            raise self._error()
        return result

    def _error(self) -> BaseException:
        return Crash() if self._fault.crash else Transient("a fault made on purpose")


def memory_store() -> Store:
    """An empty store in memory, for tests that need many."""
    return cast(Store, _OneByOne(ObstoreStore(MemoryStore())))


class _OneByOne:
    """Calls to a store, one at a time.

    obstore's store in memory can wait for ever: a list that waits for its lock keeps Python's, and
    a put that replaces an object waits for Python's while it has the other.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def called(*args: Any, **more: Any) -> Any:
            with self._turn:
                result = method(*args, **more)
                return iter(list(result)) if name == "stream" else result

        return called
