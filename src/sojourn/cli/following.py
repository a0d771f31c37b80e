"""Following a log, and leaving it without harm."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sojourn.cli.render import INTERRUPTED, Unwritable
from sojourn.core.errors import AuthError, Cancelled, Transient
from sojourn.core.status import State

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.status import Status

__all__ = ["exit_code", "followed"]

_SECOND_CHANCE = 3.0  # seconds in which a second Ctrl-C stops the task
_TIMED_OUT = 124  # as timeout(1) has it


def followed(
    session: Session, handle: Handle, rank: int | None = None, attempt: int | None = None
) -> None:
    """Show the log until the task has ended; Ctrl-C detaches, a second one stops the task."""
    try:
        for line in handle.logs(follow=True, rank=rank, attempt=attempt):
            session.renderer(line)
    except Cancelled:
        if not session.terminated:
            _detached(session, handle)
        raise Cancelled("Detached; the task goes on", hint=_way_back(handle)) from None
    except (AuthError, Transient, Unwritable) as error:
        error.hint = f"{error.hint}\nThe task goes on. {_way_back(handle)}".strip()
        raise
    except BrokenPipeError:
        session.ctx.note(f"The output was closed; the task goes on. {_way_back(handle)}")
        raise


def _way_back(handle: Handle) -> str:
    """`run` would have brought the results home, and does so no more."""
    return (
        f"Come back with: sojourn logs {handle.id} --follow\n"
        f"Bring its results home with: sojourn pull {handle.id}\n"
        f"Or bring them home and remove the rest: sojourn delete {handle.id}"
    )


def _detached(session: Session, handle: Handle) -> None:
    session.renderer.close()
    session.renew()
    session.ctx.note(
        f"Detaching from {handle.id}, which goes on. "
        f"Press Ctrl-C again within {_SECOND_CHANCE:.0f} seconds to stop it."
    )
    give_up = time.monotonic() + _SECOND_CHANCE
    while time.monotonic() < give_up:
        time.sleep(0.05)
        if session.terminated:
            return
        if session.interrupts > 1:  # also if the second came right after the first
            session.interrupts = 0
            session.renew()
            _stop(session, handle)
            raise Cancelled(
                "Stopped; what it did so far is kept",
                hint=f"Resume it with: sojourn start {handle.id}\n"
                f"Bring its results home and remove it with: sojourn delete {handle.id}",
            )


def _stop(session: Session, handle: Handle) -> None:
    from sojourn import api

    try:
        api.get(handle.id, ctx=session.ctx).stop()
    except Cancelled:
        raise Cancelled(
            "Not waiting for it; it is being stopped", hint=f"See: sojourn status {handle.id}"
        ) from None


def exit_code(status: Status) -> int:
    """What a command that waited for a task exits with: what the script did."""
    if status.state is State.SUCCEEDED:
        return 0
    if status.state is State.TIMED_OUT:
        return _TIMED_OUT
    if status.state is State.STOPPED:
        return INTERRUPTED
    return status.exit_code or 1
