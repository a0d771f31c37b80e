"""The end of a log without its beginning: as few segments are read as it takes."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.core.logpart import LONGEST_LINE, WHOLE, cut
from sojourn.storage import layout
from sojourn.storage.logs import Cursor, is_segment, read_backwards, read_logs, read_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.events import LogLine
    from sojourn.core.logpart import LogPart
    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["read_last", "read_part"]

_SKIPPED = 32 << 20  # characters of a longer one that are read to find the line before it


def read_part(store: Store, ranks: range, cursor: Cursor, part: LogPart) -> Iterator[LogLine]:
    """The lines of this part after the cursor, in the order of their times; moves the cursor."""
    if part.tail is not None:
        return iter(_tail(store, ranks, cursor, part, part.tail))
    if not part.since:
        return read_logs(store, ranks, cursor, part)
    for rank in ranks:
        _skip(store, rank, cursor, part)
    lines = read_logs(store, ranks, cursor, part)
    return (line for line in lines if line.time >= part.since)


def read_last(store: Store, ranks: range, size: int) -> Iterator[LogLine]:
    """The last lines of each rank, in the order of their times; about `size` bytes of each."""
    cursor = Cursor()
    for rank in ranks:
        left = size
        for item in reversed(store.list(layout.logs_prefix(rank))):
            left -= item.size
            if left < 0:
                cursor.last[rank] = item.path
                break
    return read_logs(store, ranks, cursor, WHOLE)


def _tail(
    store: Store, ranks: range, cursor: Cursor, part: LogPart, count: int
) -> Sequence[LogLine]:
    """The last lines. The cursor moves when all are read: whoever tries again gets them all."""
    ends: dict[int, str] = {}
    read = []
    for rank in ranks:
        listed = store.list(layout.logs_prefix(rank), after=cursor.last.get(rank, ""))
        if listed:
            ends[rank] = listed[-1].path
        read.append(_newest(store, _meant(listed, part), part, count))
    lines = list(heapq.merge(*read, key=lambda line: line.time))
    cursor.last.update(ends)
    return _last_lines(lines, count)


def _meant(listed: Sequence[ObjectInfo], part: LogPart) -> list[str]:
    return [item.path for item in listed if is_segment(item, part)]


def _newest(store: Store, paths: Sequence[str], part: LogPart, count: int) -> list[LogLine]:
    """The last lines of one rank, from its newest segments."""
    end = _End(count)
    for path in reversed(paths):
        oldest = ""
        try:
            for piece in read_backwards(store, path):
                oldest = piece.time
                if piece.time >= part.since and not end.take(piece):
                    return end.lines()
        except NotFound:
            break  # the task is being deleted
        if oldest < part.since:
            break
    return end.lines()


class _End:
    """The last lines of one rank, whose pieces come backwards.

    Of a line without an end in sight only its own end is kept.
    """

    def __init__(self, count: int) -> None:
        self._left = count
        self._pieces: list[LogLine] = []  # the last one first
        self._attempt = 0
        self._room = 0  # bytes that the line at hand may still have

    def take(self, piece: LogLine) -> bool:
        """Take the piece before the former one; False if none is needed any more."""
        if not piece.partial or piece.attempt != self._attempt:
            if not self._left:
                return False
            self._left -= 1
            self._attempt = piece.attempt
            self._room = LONGEST_LINE
        if self._room < 0:  # its end is there, but where it begins must be seen
            self._room -= len(piece.text)
            return self._room > -_SKIPPED
        self._pieces.append(replace(piece, text=cut(piece.text, self._room)))
        self._room -= len(piece.text)
        return self._room >= 0 or self._left > 0

    def lines(self) -> list[LogLine]:
        """What was taken, in order."""
        return self._pieces[::-1]


def _last_lines(pieces: Sequence[LogLine], count: int) -> list[LogLine]:
    """The last of these; the pieces of one line count once."""
    begun: dict[tuple[int, int], int] = {}  # whose line is not at its end, and where it began
    begins = []
    for number, piece in enumerate(pieces):
        whose = (piece.rank, piece.attempt)
        begins.append(begun.setdefault(whose, number))
        if not piece.partial:
            del begun[whose]
    last = set(sorted(set(begins))[-count:]) if count else set()
    return [piece for piece, begin in zip(pieces, begins, strict=True) if begin in last]


def _skip(store: Store, rank: int, cursor: Cursor, part: LogPart) -> None:
    """Move the cursor over the segments whose lines are all too old."""

    def first_time(path: str) -> str:
        try:
            return next((line.time for line in read_segment(store, path)), "")
        except NotFound:
            return ""  # the task is being deleted

    listed = store.list(layout.logs_prefix(rank), after=cursor.last.get(rank, ""))
    paths = _meant(listed, part)
    younger = bisect_left(paths, part.since, key=first_time)
    if younger > 1:  # the one before begins too early, but may have some
        cursor.last[rank] = paths[younger - 2]
