"""Which part of the logs of a task is meant."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LONGEST_LINE", "WHOLE", "LogPart", "cut"]

LONGEST_LINE = 1 << 20  # characters of a line that are shown, if only the last lines are wanted
_CUT = "[truncated: only the last 1 MiB of this line] "


def cut(line: str, room: int = LONGEST_LINE) -> str:
    """The same, or its end with a note; a program may print no newline for days."""
    return line if len(line) <= room else _CUT + line[len(line) - room :]


class LogPart(NamedTuple):
    """Some of the lines of a task's logs: all of them, unless a field says otherwise.

    `tail`: the last so many of those there are by now. `since`: those of this time or later, in
    UTC and in the form that lines have it.
    """

    rank: int | None = None
    attempt: int | None = None
    tail: int | None = None
    since: str = ""

    def takes(self, rank: int, attempt: int) -> bool:
        """Whether lines of this attempt are meant."""
        return self.rank in (None, rank) and self.attempt in (None, attempt)


WHOLE = LogPart()
