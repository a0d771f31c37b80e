"""Waiting until the machine of a task can be used: until a command runs there."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound, SojournError, TaskFailed, Transient
from sojourn.core.events import StatusChanged
from sojourn.core.status import State
from sojourn.engine.console import console_end
from sojourn.engine.observe import status
from sojourn.engine.reaching import exchange, reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud
    from sojourn.core.status import Status

__all__ = ["until", "until_it_answers", "until_it_runs"]

_WITHIN = 20 * 60.0  # seconds
_OUT_OF_REACH_AFTER = 120.0  # seconds that it runs: its SSH server is there long before
_GROWTH = 1.5  # of the time between looks, where others than the cloud are asked
_LONGEST = 500  # bytes of what a machine says of itself
_PRINTED = 64 << 10  # bytes that it may print before: its shell's files may do so, too

_TAIL = 4000  # bytes of the log that an error quotes from
_LINES = 10


def until_it_runs(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Wait until a command can be run on the machine, or the machine at least runs.

    This computer may not be let in, by choice or by a firewall on the way: that is told.
    """
    if why := _wait(ctx, cloud, id, _OUT_OF_REACH_AFTER, partial(_answer, ctx, cloud, id)):
        ctx.warn(f"The machine is running, but cannot be reached from this computer: {why}")


def until_it_answers(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Wait until a command can be run on the machine of rank 0."""
    _wait(ctx, cloud, id, float("inf"), partial(_answer, ctx, cloud, id))


def until(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    obstacle: Callable[[], str],
    step: str,
    poll: float,
) -> None:
    """Wait until there is no obstacle any more, or the task has succeeded.

    One that fails, or does not get there in time, is an error that says why.
    """
    _wait(ctx, cloud, id, float("inf"), obstacle, step, poll, brief=True)


def _wait(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    reached_within: float,
    obstacle: Callable[[], str],
    step: str = "Waiting for the machine",
    poll: float = 0.0,
    *,
    brief: bool = False,
) -> str:
    """What is in the way though it runs for so long; empty if nothing is.

    One that ends before, or does not run in time, is an error that says why; `brief`: one that
    ends well is not.
    """
    give_up = time.monotonic() + _WITHIN
    runs_since = float("inf")
    pause = cloud.features.poll
    seen: tuple[State, str] | None = None
    machine = ""
    with ctx.step(step):
        while True:
            ctx.check()
            now = status(ctx, cloud, id)
            machine = next((rank.machine for rank in now.ranks if rank.machine), machine)
            if (now.state, now.reason) != seen:
                seen = (now.state, now.reason)
                ctx.emit(StatusChanged(str(id), str(now.state), now.reason, now.exit_code))
            if brief and now.state is State.SUCCEEDED:
                return ""
            if now.state.ended:
                raise _ended(now, id, _quoted(ctx, cloud, id, machine))
            runs = now.state is State.RUNNING
            runs_since = min(runs_since, time.monotonic()) if runs else float("inf")
            why = obstacle() if runs else now.reason or str(now.state)
            if not why or time.monotonic() - runs_since > reached_within:
                return why
            if time.monotonic() > give_up:
                raise Transient(
                    f"Machine {id} did not answer within {_WITHIN / 60:.0f} minutes: {why}"
                    + _quoted(ctx, cloud, id, machine)
                )
            ctx.sleep(pause)
            pause = min(pause * _GROWTH, max(poll, cloud.features.poll))


def _answer(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    """Why it does not; empty if it does."""
    try:
        code, _, errors = exchange(reach(ctx, cloud, id, 0).run(ctx, ["true"]), b"", most=_PRINTED)
    except (NotFound, Transient) as error:  # it may be gone again, and another one come
        return error.message
    said = errors[-_LONGEST:].decode(errors="replace").strip()
    return "" if code == 0 else said or f"exit code {code}"


def _ended(now: Status, id: TaskId, quoted: str) -> SojournError:
    why = f": {now.reason}" if now.reason else ""
    return TaskFailed(f"Machine {id} {now.state}{why}{quoted}", exit=now.exit_code or 1)


def _quoted(ctx: Context, cloud: Cloud, id: TaskId, machine: str) -> str:
    """The last lines of its log and of its console, for an error."""
    found = {
        "The log ends with:": list(_last_lines(ctx, cloud, id)),
        "The machine's console ends with:": console_end(ctx, cloud, id, machine),
    }
    texts = [[title, *lines] for title, lines in found.items() if lines]
    return "".join(f"\n  {line}" for text in texts for line in text)


def _last_lines(ctx: Context, cloud: Cloud, id: TaskId) -> Iterator[str]:
    try:
        lines = [line.text for line in cloud.data(id).log_tail(ctx, _TAIL)]
    except SojournError:
        return
    yield from lines[-_LINES:]
