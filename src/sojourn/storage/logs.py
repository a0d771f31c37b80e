"""Logs: append-only segments per rank and attempt, readable while they are written.

A segment is lines of `TIME|text`, or `TIME>text` where the end of the line has not been printed
yet. Text is what the script printed, byte for byte.
"""

from __future__ import annotations

import heapq
import threading
import time
from typing import TYPE_CHECKING

from sojourn.core.clock import utc_now
from sojourn.core.errors import NotFound
from sojourn.core.events import LogLine
from sojourn.core.logpart import WHOLE, LogPart
from sojourn.storage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["Cursor", "LogWriter", "is_segment", "read_backwards", "read_logs", "read_segment"]

_SEGMENT = 1 << 20  # a segment is written when it is this large, however young
_BUFFER = 8 << 20  # the script waits when this much is not written yet
_HOLD = 0.5  # seconds that the beginning of a line waits for its end
_LINE = 64 << 10  # longer lines are cut
_LARGEST = 32 << 20  # bytes of a segment: more than the buffer and what one line adds
_TIME = len("2026-01-31T12:34:56.123456Z")
_COMPLETE, _PARTIAL = b"|", b">"


class LogWriter:
    """The log of one attempt. `append` and `flush` may be called from different threads."""

    def __init__(self, store: Store, rank: int, attempt: int) -> None:
        self._store = store
        self._rank = rank
        self._attempt = attempt
        self._buffer = bytearray()
        self._open = b""  # the beginning of a line without its end
        self._changed = threading.Condition()
        self._flushing = threading.Lock()
        self._pending = b""  # a segment on its way
        self._closed = False
        self._open_since = 0.0
        self.segments = 0

    def append(self, data: bytes) -> None:
        """Take what the script printed; waits while too much is not written yet."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._buffer) < _BUFFER)
            stamp = utc_now().encode()
            *lines, rest = (self._open + data).split(b"\n")
            for line in lines:
                self._add(stamp, _COMPLETE, self._cut(stamp, line))
            if rest:
                self._open_since = time.monotonic()
            self._open = self._cut(stamp, rest)
            self._changed.notify_all()

    @property
    def empty(self) -> bool:
        """Whether all that was printed is written."""
        return not (self._buffer or self._open or self._pending)

    @property
    def full(self) -> bool:
        """Whether a segment should be written, however young it is."""
        return len(self._buffer) >= _SEGMENT

    def wait(self, seconds: float, *, eager: bool = False) -> None:
        """Return when a segment is full, after this long, or when the log is closed.

        `eager`: also as soon as there is anything to write.
        """
        give_up = time.monotonic() + seconds
        with self._changed:
            while not self._due(eager):
                left = give_up - time.monotonic()
                if eager and self._begun():
                    left = min(left, self._held_for())
                if left <= 0:
                    return
                self._changed.wait(left)

    def _due(self, eager: bool) -> bool:
        return self.full or self._closed or (eager and bool(self._buffer))

    def _begun(self) -> bool:
        """Whether an unfinished line could be written: one that is not only part of a character."""
        return bool(self._open) and _utf8_cut(self._open) > 0

    def _held_for(self) -> float:
        """How long an unfinished line is still to wait: programs print lines in pieces."""
        return max(0.0, self._open_since + _HOLD - time.monotonic())

    def close(self) -> None:
        """Nothing more will be appended: whoever waits is woken."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def flush(self, *, last: bool = False) -> bool:
        """Write what was printed so far; False if nothing was.

        An unfinished line waits a moment for its end, and a character of which only the beginning
        was printed for as long as it takes, unless it is the `last` flush. If the store fails,
        nothing is lost: the next flush writes the very same segment first, because the store may
        have it already and a reader may have seen it.
        """
        with self._flushing:
            resumed = self._write_pending()
            self._pending = self._take(last)
            return self._write_pending() or resumed

    def _write_pending(self) -> bool:
        if not self._pending:
            return False
        path = layout.segment_path(self._rank, self._attempt, self.segments + 1)
        self._store.put(path, self._pending)
        self.segments += 1
        self._pending = b""
        return True

    def _add(self, stamp: bytes, kind: bytes, text: bytes) -> None:
        self._buffer += stamp + kind + text + b"\n"

    def _cut(self, stamp: bytes, line: bytes) -> bytes:
        """Add the beginning of a line that is too long; gives its end."""
        start = 0
        while len(line) - start > _LINE:
            piece = line[start : start + _LINE]
            cut = _utf8_cut(piece)
            self._add(stamp, _PARTIAL, piece[:cut])
            start += cut
        return line[start:]

    def _take(self, last: bool) -> bytes:
        with self._changed:
            held = not last and self._held_for() > 0
            cut = 0 if held else len(self._open) if last else _utf8_cut(self._open)
            line, self._open = self._open[:cut], self._open[cut:]
            if line:
                self._add(utc_now().encode(), _PARTIAL, line)
            taken = bytes(self._buffer)
            self._buffer.clear()
            self._changed.notify_all()
            return taken


def _utf8_cut(data: bytes) -> int:
    """Where to cut so that no character is torn apart."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:  # the first byte of a character of `need` bytes
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < need else len(data)
        if byte < 0x80:
            break
    return len(data)


class Cursor:
    """How far the logs were read: the last segment of each rank."""

    def __init__(self) -> None:
        self.last: dict[int, str] = {}


def read_logs(
    store: Store, ranks: range, cursor: Cursor, part: LogPart = WHOLE
) -> Iterator[LogLine]:
    """All lines after the cursor, in the order of their times; moves the cursor.

    `part`: only those of its rank and attempt.
    """
    return heapq.merge(
        *(_read_rank(store, rank, cursor, part) for rank in ranks), key=lambda line: line.time
    )


def is_segment(item: ObjectInfo, part: LogPart) -> bool:
    """Whether it is a segment of this part. A machine can write anything there."""
    of = layout.segment_of(item.path)
    return of is not None and item.size <= _LARGEST and part.takes(*of)


def _read_rank(store: Store, rank: int, cursor: Cursor, part: LogPart) -> Iterator[LogLine]:
    if part.rank not in (None, rank):
        return
    for item in store.list(layout.logs_prefix(rank), after=cursor.last.get(rank, "")):
        if is_segment(item, part):
            try:
                lines = read_segment(store, item.path)
            except NotFound:
                return  # the task is being deleted
            yield from lines
        cursor.last[rank] = item.path


def read_segment(store: Store, path: str) -> Iterator[LogLine]:
    """The lines of one segment. Absent: raises NotFound."""
    return _read(store, path, _records)


def read_backwards(store: Store, path: str) -> Iterator[LogLine]:
    """The same lines, the last one first."""
    return _read(store, path, _records_backwards)


def _read(store: Store, path: str, cut: Callable[[bytes], Iterator[bytes]]) -> Iterator[LogLine]:
    of = layout.segment_of(path)
    if of is None:
        raise NotFound(f"{path} is not a segment of a log")
    data = bytes(store.get(path, most=_LARGEST))
    # What is shorter is no record of ours, and a segment can have millions of it.
    return (_line(record, *of) for record in cut(data) if len(record) > _TIME)


def _records(data: bytes) -> Iterator[bytes]:
    # One by one: a machine can write a segment of nothing but ends of lines.
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        yield data[start:end]
        start = end + 1


def _records_backwards(data: bytes) -> Iterator[bytes]:
    end = data.rfind(b"\n")
    while end >= 0:
        before = data.rfind(b"\n", 0, end)
        yield data[before + 1 : end]
        end = before


def _line(record: bytes, rank: int, attempt: int) -> LogLine:
    text = record[_TIME + 1 :].decode("utf-8", "replace")
    partial = record[_TIME : _TIME + 1] == _PARTIAL
    stamp = record[:_TIME].decode("ascii", "replace")
    if not stamp.isprintable():
        stamp = ""  # not written by us
    return LogLine(rank, attempt, stamp, text, partial)
