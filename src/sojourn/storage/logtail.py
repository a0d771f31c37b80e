"""The end of a log without its beginning: as few segments are read as it takes."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.core.logpart import WHOLE
from sojourn.storage import layout
from sojourn.storage.logs import Cursor, is_segment, read_logs, read_segment

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.events import LogLine
    from sojourn.core.logpart import LogPart
    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["read_last", "read_part"]


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
    """At least so many lines of one rank, from its newest segments."""
    segments: list[list[LogLine]] = []
    found = 0
    for path in reversed(paths):
        try:
            lines = list(read_segment(store, path))
        except NotFound:
            break  # the task is being deleted
        segments.append(lines)
        found += sum(not line.partial for line in lines)
        # One more than needed: of the first, the beginning may be in the segment before.
        if found > count or (lines and lines[0].time < part.since):
            break
    return [line for lines in reversed(segments) for line in lines if line.time >= part.since]


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
