"""Staying with a task to its end, and leaving it without harm."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.cli.gone import at_home
from sojourn.cli.interrupts import INTERRUPTED
from sojourn.cli.screen import Unwritable
from sojourn.core.durations import format_seconds
from sojourn.core.errors import AuthError, Cancelled, Transient
from sojourn.core.sizes import size_of
from sojourn.core.status import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.api import Handle, Result
    from sojourn.cli.session import Session
    from sojourn.core.events import Downloaded
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["attended", "exit_code", "looked_at", "run_through", "see_through"]

_SECOND_CHANCE = 3.0  # seconds in which a second Ctrl-C stops the task
_CODES = {State.SUCCEEDED: 0, State.TIMED_OUT: 124, State.STOPPED: INTERRUPTED}  # 124: timeout(1)


def looked_at(session: Session, handle: Handle, **part: Any) -> Status:
    """Show the log until the task has ended; its state then. Ctrl-C ends this, never the task."""
    back = f"Run `sojourn logs {handle.short} --follow` to follow it again."
    from sojourn.api.running import followed

    try:
        with _leaving(session, back):
            return followed(session.ctx, handle, **part)
    except Cancelled:
        raise Cancelled(
            "Stopped following; the task keeps running. "
            f"Run `sojourn stop {handle.short}` to stop it."
        ) from None


def attended(session: Session, handle: Handle) -> Status:
    """The same for whoever started the task: Ctrl-C detaches, and a second one stops the task."""
    from sojourn.api.running import followed

    try:
        with _leaving(session, _way_back(handle)):
            return followed(session.ctx, handle)
    except Cancelled:
        if not session.terminated:
            _detached(session, handle)
        raise Cancelled("Detached; the task keeps running", hint=_way_back(handle)) from None


@contextmanager
def _leaving(session: Session, back: str) -> Iterator[None]:
    """Whoever cannot follow any more learns that the task does not mind."""
    session.parting = f"The task keeps running. {back}"
    try:
        yield
    except (AuthError, Transient, Unwritable) as error:
        error.hint = f"{error.hint}\n{session.parting}".strip()
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
    return _CODES.get(status.state, status.exit_code or 1)


def run_through(session: Session, tasks: Sequence[Task], **how: Any) -> int:
    """Create tasks, and unless they are detached, see each through; returns the exit code.

    `how`: for `run_all`.
    """
    from sojourn.api import Handle, rows, running

    codes = []
    for step in running.run_all(session.ctx, tasks, follow=partial(attended, session), **how):
        if isinstance(step, Handle):
            session.renderer.result(rows.created(step), step.id if how.get("detach") else "")
        else:
            codes.append(_summarised(session, step))
    return next((code for code in codes if code), 0)


def see_through(session: Session, handle: Handle, *, keep: bool, keep_failed: bool) -> int:
    """Follow a task to its end, download its results and delete it; returns the exit code."""
    from sojourn.api import running

    follow = partial(attended, session)
    result = running.see_through(
        session.ctx, handle, keep=keep, keep_failed=keep_failed, follow=follow
    )
    return _summarised(session, result)


def _summarised(session: Session, result: Result) -> int:
    """Tell how it went, after the results have come home; returns the exit code."""
    from sojourn.api import rows

    code = _CODES.get(result.status, result.exit_code or 1)
    if result.gone:
        session.ctx.warn(
            f"Task {result.id} was deleted by another command; its results were not downloaded here"
        )
        return code or 1
    if code and result.log:
        session.ctx.note(f"Log saved to {result.log}")
    parts = [str(result.status)]
    parts += [] if result.exit_code is None else [f"exit code {result.exit_code}"]
    parts += [] if result.seconds is None else [f"ran {format_seconds(result.seconds)}"]
    parts += [f"{result.attempts} attempts"] if result.attempts > 1 else []
    parts += [_brought(result.downloaded)] if result.downloaded else []
    text = f"Summary: {', '.join(parts)}"
    session.renderer.summary(rows.ended(result), text, str(result.status))
    return code or int(result.lost)


def _brought(home: Downloaded) -> str:
    files = "1 file" if home.files == 1 else f"{home.files:,} files"
    amount = f"{files} ({size_of(home.bytes)})" if home.files else "no new files"
    return f"{amount} in {at_home(home.folder)}"
