"""Following a log, and leaving it without harm."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sojourn.cli.interrupts import INTERRUPTED
from sojourn.cli.screen import Unwritable
from sojourn.core.errors import AuthError, Cancelled, NotFound, Transient
from sojourn.core.status import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.api import Handle
    from sojourn.cli.session import Session
    from sojourn.core.status import Status

__all__ = ["attended", "exit_code", "looked_at"]

_SECOND_CHANCE = 3.0  # seconds in which a second Ctrl-C stops the task
_TIMED_OUT = 124  # as timeout(1) has it


def looked_at(session: Session, handle: Handle, **part: Any) -> Status:
    """Show the log until the task has ended; its state then. Ctrl-C ends this, never the task."""
    back = f"Run `sojourn logs {handle.short} --follow` to follow it again."
    try:
        with _leaving(session, back):
            return _followed(session, handle, back, **part)
    except Cancelled:
        raise Cancelled(
            "Stopped following; the task keeps running. "
            f"Run `sojourn stop {handle.short}` to stop it."
        ) from None


def attended(session: Session, handle: Handle) -> Status:
    """The same for whoever started the task: Ctrl-C detaches, and a second one stops the task."""
    try:
        with _leaving(session, _way_back(handle)):
            return _followed(session, handle, _way_back(handle))
    except Cancelled:
        if not session.terminated:
            _detached(session, handle)
        raise Cancelled("Detached; the task keeps running", hint=_way_back(handle)) from None


def _followed(session: Session, handle: Handle, back: str, **part: Any) -> Status:
    from sojourn.engine.lifecycle import Deleted

    session.parting = f"The task keeps running. {back}"
    for line in handle.logs(follow=True, **part):
        session.ctx.check()  # there may be many at once
        session.renderer(line)
    try:
        return handle.status()
    except NotFound as error:
        raise Deleted(handle.id) from error


@contextmanager
def _leaving(session: Session, back: str) -> Iterator[None]:
    """Whoever cannot follow any more learns that the task does not mind."""
    try:
        yield
    except (AuthError, Transient, Unwritable) as error:
        error.hint = f"{error.hint}\nThe task keeps running. {back}".strip()
        raise
    except BrokenPipeError:
        session.ctx.note(f"Standard output was closed; the task keeps running. {back}")
        raise


def _way_back(handle: Handle) -> str:
    """`run` would have downloaded the results, and does so no more."""
    return (
        f"Run `sojourn attach {handle.short}` to reattach and download the results at the end.\n"
        f"Run `sojourn pull {handle.short}` to download the results so far.\n"
        f"Run `sojourn delete {handle.short}` to stop it, download the results and delete it."
    )


def _detached(session: Session, handle: Handle) -> None:
    session.renderer.close()
    session.renew()
    session.ctx.note(
        f"Detaching from {handle.short}, which keeps running. "
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
                "Stopped; its work so far is saved",
                hint=f"Run `sojourn start {handle.short}` to resume it.\n"
                f"Run `sojourn delete {handle.short}` to download its results and delete it.",
            )


def _stop(session: Session, handle: Handle) -> None:
    from sojourn import api

    try:
        api.get(handle.id, ctx=session.ctx).stop()
    except Cancelled:
        raise Cancelled(
            "Not waiting any longer; the task is still stopping",
            hint=f"Run `sojourn status {handle.short}` to see its state.",
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
