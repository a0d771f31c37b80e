"""Waiting until the machine of a task can be used: until a command runs there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound, SojournError, TaskFailed, Transient
from sojourn.core.events import StatusChanged
from sojourn.core.status import State
from sojourn.engine.observe import status
from sojourn.engine.reaching import exchange, reach

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud
    from sojourn.core.status import Status

__all__ = ["until_it_answers"]

_TAIL = 4000  # bytes of the log that an error quotes from
_LINES = 10


def until_it_answers(ctx: Context, cloud: Cloud, id: TaskId, within: float) -> None:
    """Wait until a command can be run on the machine of rank 0.

    One that ends before, or takes longer than `within` seconds, is an error that says why.
    """
    give_up = time.monotonic() + within
    why, seen = "", None
    while True:
        ctx.check()
        now = status(ctx, cloud, id)
        if (now.state, now.reason) != seen:
            seen = (now.state, now.reason)
            ctx.emit(StatusChanged(str(id), str(now.state), now.reason, now.exit_code))
        if now.state.ended:
            raise _ended(ctx, cloud, id, now)
        why = now.reason or str(now.state)
        if now.state is State.RUNNING:
            why = _answer(ctx, cloud, id)
        if not why:
            return
        if time.monotonic() > give_up:
            raise Transient(
                f"Machine {id} did not answer within {within / 60:.0f} minutes: {why}"
                + _quoted(ctx, cloud, id)
            )
        ctx.sleep(cloud.features.poll)


def _answer(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    """Why it does not; empty if it does."""
    if not cloud.features.reach:
        return ""
    try:
        code, _, errors = exchange(reach(ctx, cloud, id, 0).run(ctx, ["true"]), b"")
    except (NotFound, Transient) as error:  # it may be gone again, and another one come
        return error.message
    return "" if code == 0 else errors.decode(errors="replace").strip() or f"exit code {code}"


def _ended(ctx: Context, cloud: Cloud, id: TaskId, now: Status) -> SojournError:
    why = f": {now.reason}" if now.reason else ""
    message = f"Machine {id} {now.state}{why}{_quoted(ctx, cloud, id)}"
    return TaskFailed(message, exit=now.exit_code or 1)


def _quoted(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    """The last lines of its log, for an error."""
    lines = list(_last_lines(ctx, cloud, id))
    return "".join(f"\n  {line}" for line in ["The log ends with:", *lines]) if lines else ""


def _last_lines(ctx: Context, cloud: Cloud, id: TaskId) -> Iterator[str]:
    try:
        lines = [line.text for line in cloud.data(id).log_tail(ctx, _TAIL)]
    except SojournError:
        return
    yield from lines[-_LINES:]
