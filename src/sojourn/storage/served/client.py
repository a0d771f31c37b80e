"""The client: a store whose folder is at the other end of a stream."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Transient
from sojourn.core.untrusted import LARGEST
from sojourn.storage.failures import damaged
from sojourn.storage.objectinfo import MOST
from sojourn.storage.served.calls import Lost
from sojourn.storage.served.messages import batches, listing_from
from sojourn.storage.served.opener import Opener, Unopened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.storage.objectinfo import Buffer, ObjectInfo
    from sojourn.storage.served.calls import Answer, Call
    from sojourn.storage.served.connection import Connection, Stream

__all__ = ["ServedStore"]

_LARGE = 256 << 10
_LARGE_FOR = 1800.0  # seconds for a large body, which may begin again and again
_SLOW = 1800.0  # seconds for which a disk may be busy with what it has to keep
_PART = 1 << 20  # bytes that a stream reads in one call
_AHEAD = 2  # calls of a stream that are under way while its caller is busy
_RANGES_AT_ONCE = 1000
_LISTING = 256 << 20  # bytes of a listing: some two million objects


class ServedStore:
    """A store over a stream. `open_stream` gives a new one whenever the former broke.

    Every call is repeated until it has an answer, for `retry_for` seconds; all can be repeated
    without harm. `open_stream` is called by one thread at a time: Transient and OSError are worth
    another try, any other error ends the call.
    """

    def __init__(self, open_stream: Callable[[], Stream], *, retry_for: float = 120.0) -> None:
        self._opener = Opener(open_stream)
        self._retry_for = retry_for

    def get(self, path: str, *, most: int = MOST) -> memoryview:
        return memoryview(self._call({"call": "get", "path": path, "most": most}, most=most).body)

    def stream(self, path: str) -> Iterator[memoryview]:
        # The caller sets the pace: a server that sends on would fill the memory.
        first = self._call(_part(path, 0, ""), most=_PART)
        size, tag = _whole(path, first.said), str(first.said.get("tag"))
        ahead: deque[tuple[dict[str, Any], tuple[Connection, Call] | None]] = deque()
        at = _PART
        answer = first
        while True:
            while at < size and len(ahead) < _AHEAD:
                said = _part(path, at, tag)
                ahead.append((said, self._started(said)))
                at += _PART
            if answer.body:
                yield memoryview(answer.body)
            if not ahead:
                return
            answer = self._finished(*ahead.popleft())

    def get_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        found: list[memoryview] = []
        for first in range(0, max(len(ranges), 1), _RANGES_AT_ONCE):
            wanted = [list(part) for part in ranges[first : first + _RANGES_AT_ONCE]]
            said = {"call": "ranges", "path": path, "ranges": wanted}
            answer = self._call(said, most=sum(length for _, length in wanted))
            start = 0
            for size in _sizes(path, answer.said, len(wanted)):
                found.append(memoryview(answer.body)[start : start + size])
                start += size
        return found

    def put(self, path: str, data: Buffer) -> None:
        self._call({"call": "put", "path": path, "size": len(data)}, data)

    def put_new(self, path: str, data: Buffer) -> bool:
        answer = self._call({"call": "put_new", "path": path, "size": len(data)}, data)
        return answer.result is True

    def keep(self, paths: Sequence[str]) -> None:
        for batch in batches(paths):
            self._call({"call": "keep", "paths": batch}, patience=_SLOW)

    def copy(self, source: str, target: str) -> None:
        self._call({"call": "copy", "source": source, "target": target}, patience=_SLOW)

    def list(self, prefix: str, after: str = "") -> list[ObjectInfo]:
        said = {"call": "list", "prefix": prefix, "after": after}
        return listing_from(self._call(said, most=_LISTING).body)

    def head(self, path: str) -> ObjectInfo | None:
        found = listing_from(self._call({"call": "head", "path": path}, most=LARGEST).body)
        return found[0] if found else None

    def delete(self, paths: Sequence[str]) -> None:
        for batch in batches(paths):
            self._call({"call": "delete", "paths": batch})

    def close(self) -> None:
        """End the connection; calls under way raise Transient."""
        self._opener.close()

    def __enter__(self) -> ServedStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self,
        said: dict[str, Any],
        body: Buffer | None = None,
        *,
        patience: float = 0.0,
        most: int = 0,
    ) -> Answer:
        patience = patience or self._retry_for
        large = body is not None and len(body) > _LARGE
        began = connected = time.monotonic()
        while True:
            try:
                return self._opener.connection().call(said, body, patience, most)
            except Lost as error:
                lost: Exception = error
                if large:
                    connected = time.monotonic()  # it was under way until now
            except Unopened as error:
                lost = error.why
            now = time.monotonic()
            if now > connected + self._retry_for or now > began + _LARGE_FOR:
                raise _unreachable(lost) from lost
            if not self._opener.pause():
                raise _unreachable(lost) from lost

    def _started(self, said: dict[str, Any]) -> tuple[Connection, Call] | None:
        try:
            connection = self._opener.connection()
            return connection, connection.start(said, _PART)
        except (Lost, Unopened):
            return None  # another try when it is waited for

    def _finished(self, said: dict[str, Any], started: tuple[Connection, Call] | None) -> Answer:
        if started:
            connection, call = started
            with suppress(Lost):
                return connection.finish(call, self._retry_for)
        return self._call(said, most=_PART)


def _whole(path: str, said: dict[str, Any]) -> int:
    size = said.get("whole")
    if type(size) is not int:
        raise damaged(path, "its server does not tell its size")
    return size


def _sizes(path: str, said: dict[str, Any], count: int) -> list[int]:
    sizes = said.get("sizes")
    if (
        not isinstance(sizes, list)
        or len(sizes) != count
        or not all(type(size) is int and size >= 0 for size in sizes)
    ):
        raise damaged(path, "its server does not tell the sizes of its parts")
    return sizes


def _part(path: str, start: int, tag: str) -> dict[str, Any]:
    return {"call": "part", "path": path, "start": start, "length": _PART, "tag": tag}


def _unreachable(why: Exception) -> Transient:
    if isinstance(why, Transient):
        return Transient(why.message, hint=why.hint, retry_after=why.retry_after)
    return Transient(
        f"Could not reach the store: {why or type(why).__name__}",
        hint="Check your network and try again.",
    )
