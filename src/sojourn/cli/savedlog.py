"""The log of a task that was deleted: what was saved of it on this computer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.events import LogLine
from sojourn.core.logpart import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from sojourn.cli.session import Session

__all__ = ["show_saved"]


def show_saved(
    session: Session, id: str, path: Path, tail: int | None, asked: Sequence[str], follow: bool
) -> int:
    """Print a saved log; returns the exit code.

    It is text, a line for each line of the log: of ranks, attempts and times it knows nothing.
    Whoever wanted to follow gets 1, for how the script ended is not known any more.
    """
    unknown = [
        Problem(name, "not available: the task was deleted, and its saved log is plain text")
        for name in asked
        if name != "tail"
    ]
    if unknown:
        first, *others = unknown
        raise InvalidInput(first.path, first.message, *others)
    session.ctx.note(f"Task {id} was deleted; this is its log, saved in {path}")
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        lines: Iterable[str] = file if tail is None else map(cut, deque(file, maxlen=tail))
        for line in lines:
            session.ctx.check()
            session.renderer(LogLine(0, 0, "", line.removesuffix("\n"), id=id))
    return int(follow)
