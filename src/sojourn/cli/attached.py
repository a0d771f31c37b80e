"""Staying with a task to its end: what `run` and `attach` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.core.status import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.status import Status

__all__ = ["log_writer", "see_through"]


def see_through(
    session: Session,
    handle: Handle,
    *,
    keep: bool,
    keep_failed: bool,
    ended: Callable[[Handle, Status], None] = lambda handle, now: None,
) -> int:
    """Follow a task to its end, download its results and delete it; returns the exit code.

    `ended`: what else is to be done before it is deleted.
    """
    from sojourn.cli.following import attended, exit_code
    from sojourn.cli.summary import reports_of, summarise

    with handle.awaited(keep=keep or keep_failed):
        now = attended(session, handle)
    code = exit_code(now)
    try:
        ended(handle, now)
        reports = reports_of(handle)
        with handle.awaited(keep=True):
            result = handle.conclude(now, keep=keep, keep_failed=keep_failed)
    except NotFound:
        session.ctx.warn(
            f"Task {handle.id} was deleted by another command; its results were not downloaded here"
        )
        return code or 1
    if code and result.log:
        session.ctx.note(f"Log saved to {result.log}")
    summarise(session, handle.id, now, reports)
    return code or (1 if result.kept and handle.lost_some() else 0)


def log_writer(session: Session, path: Path | None) -> Callable[[Handle, Status], None]:
    """What writes the log of rank 0 to a file, if any, when a task has ended, however it did."""
    from sojourn.api.resultfile import write_result

    def write(handle: Handle, now: Status) -> None:
        if path is None or now.state is State.STOPPED:
            return  # one that was stopped is kept, and goes on
        write_result(handle, path)
        session.ctx.note(f"Wrote the log of rank 0 to {path}")

    return write
