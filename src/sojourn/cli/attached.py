"""Staying with a task to its end: what `run` and `attach` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound
from sojourn.core.status import State

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session

__all__ = ["see_through"]


def see_through(session: Session, handle: Handle, keep: bool) -> int:
    """Follow a task to its end, download its results and delete it; returns the exit code."""
    from sojourn.cli.following import attended, exit_code

    now = attended(session, handle)
    code = exit_code(now)
    if now.state is State.STOPPED:
        session.ctx.note(f"Resume it with: sojourn start {handle.id}")
    elif handle.lost_some():
        session.ctx.warn(
            f"Kept, because some of its output could not be stored. "
            f"See more with: sojourn status {handle.id}\n"
            f"The rest comes home now, and again with: sojourn pull {handle.id}\n"
            f"Remove it with: sojourn delete {handle.id}"
        )
        handle.pull()
        return code or 1
    elif keep:
        handle.pull()
        session.ctx.note(f"Kept; remove it with: sojourn delete {handle.id}")
    elif now.state is State.SUCCEEDED and handle.left_nothing():
        session.ctx.warn(
            f"Kept, because there is nothing in its output. See what it wrote with: "
            f"sojourn pull {handle.id} --output . --into FOLDER\n"
            f"Remove it with: sojourn delete {handle.id}"
        )
    else:
        return code if _deleted(session, handle) else code or 1
    return code


def _deleted(session: Session, handle: Handle) -> bool:
    """Delete it; whether it was this command that downloaded its results."""
    try:
        handle.delete()
    except NotFound:
        session.ctx.warn(
            f"Task {handle.id} was deleted by another command; "
            "this one did not download its results"
        )
        return False
    return True
