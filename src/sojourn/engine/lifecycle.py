"""Stop, start and interrupt: the order of things, the same on every cloud.

Every verb can be repeated and interrupted at any point: it looks at what is there, and goes on
from it. A cloud's resources are made in order and removed in the reverse order, the scaler being
the last to come and the first to go.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from sojourn.core.errors import (
    LIST_ALL,
    Cancelled,
    Conflict,
    IntegrityError,
    InvalidInput,
    NotFound,
    SojournError,
    Transient,
)
from sojourn.core.parallel import together
from sojourn.core.status import INCOMPLETE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Data, Fleet, Resource, Scaler
    from sojourn.core.task import Task

__all__ = [
    "Deleted",
    "any_there",
    "check_rank",
    "ensure_started",
    "exists",
    "interrupt",
    "require",
    "stages",
    "start",
    "stop",
    "stop_for_good",
    "unless_deleted",
]

# Seconds for what another command deletes to be gone: its store goes last, and in the midst of that
# it looks damaged.
_GONE_WITHIN = 60.0
_TOUCHED_WITHIN = 5.0  # and for a store that still looks whole to be touched

_FLUSH_WITHIN = 60 * 60.0  # seconds for machines to store the last of their work
_FORCE_WITHIN = 10.0  # and if they are to be removed by force
_TELL_AFTER = 5.0  # seconds until it is told who is waited for


def stages(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Those that do not need each other, together, in the order of creation."""
    return [list(stage) for _, stage in groupby(resources, key=lambda resource: resource.stage)]


def exists(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether anything of a task is there."""
    return any_there(ctx, cloud.resources(id, None))


def any_there(ctx: Context, resources: Sequence[Resource]) -> bool:
    """Whether anything of these is there."""
    store, *others = resources  # what is there mostly has a store
    return store.read(ctx) or any(together([partial(other.read, ctx) for other in others]))


class Deleted(NotFound):
    """Another command deleted the task meanwhile."""

    def __init__(self, id: TaskId | str) -> None:
        super().__init__(f"Task {id} was deleted by another command", hint=LIST_ALL)


@contextmanager
def unless_deleted(ctx: Context, cloud: Cloud, id: TaskId) -> Iterator[None]:
    """An error is Deleted if it comes from another command that deletes the task."""
    try:
        yield
    except (Cancelled, Deleted):
        raise
    except (Conflict, IntegrityError, NotFound, OSError, Transient) as error:
        if _vanishes(ctx, cloud, id):
            raise Deleted(id) from error
        raise


def _vanishes(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether another command removes what is left of a task: the scaler is the first to go."""
    began = time.monotonic()
    try:
        if cloud.scaler(id).read(ctx):
            return False
        while exists(ctx, cloud, id):
            waited = time.monotonic() - began
            if waited > (_TOUCHED_WITHIN if _has_task(ctx, cloud, id) else _GONE_WITHIN):
                return False
            ctx.sleep(cloud.features.poll)
    except Cancelled:
        raise
    except (SojournError, OSError):
        return False  # nobody can tell
    return True


def _has_task(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    try:
        cloud.data(id).load(ctx)
    except NotFound:
        return False
    return True


def stop(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Take all machines away, with notice, and wait until they have stored their work."""
    require(ctx, cloud, id)
    with unless_deleted(ctx, cloud, id), ctx.step("Stopping machines"):
        _scale_to_none(ctx, cloud, id, _FLUSH_WITHIN)


def _scale_to_none(ctx: Context, cloud: Cloud, id: TaskId, seconds: float) -> None:
    """Want no machines, and wait until all are gone; Transient if that takes longer."""
    scaler = cloud.scaler(id)
    if not scaler.read(ctx):
        return
    with suppress(NotFound):  # another command deletes it meanwhile
        scaler.scale(ctx, 0)
    began = time.monotonic()
    waiting = ctx.within(seconds)
    told = seconds <= _TELL_AFTER
    while (fleet := scaler.fleet(ctx)) and (fleet.machines or fleet.wanted):
        if fleet.wanted:  # as long as one is there, it may ask for others
            with suppress(NotFound):
                scaler.scale(ctx, 0)
        if fleet.machines and not told and time.monotonic() > began + _TELL_AFTER:
            ctx.note(_waiting_for(id, fleet, seconds))
            told = True
        waiting.sleep(cloud.features.poll)


def _waiting_for(id: TaskId, fleet: Fleet, seconds: float) -> str:
    names = [machine.id for machine in fleet.machines]
    who = f"machine {names[0]}" if len(names) == 1 else f"{len(names)} machines"
    whose = "its" if len(names) == 1 else "their"
    return (
        f"Waiting for {who} to store {whose} work (up to {seconds / 60:.0f} min). "
        f"Run `sojourn delete --force {id}` to terminate {'it' if len(names) == 1 else 'them'} now "
        "and remove the task."
    )


def start(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Go on with the ranks that have not ended; those that have stay as they are."""
    require(ctx, cloud, id)
    data = cloud.data(id)
    if not cloud.scaler(id).read(ctx):
        raise NotFound(
            f"Could not start {id}: {INCOMPLETE.reason}",
            hint=f"Run `sojourn delete {id}` to delete it.",
        )
    task = data.load(ctx)
    records = data.records(ctx, task.parallelism)
    if all(record.ended for record in records):
        ctx.note(f"{id} has ended and cannot be started again; create a new task")
        return
    with ctx.step("Starting machines"):
        ensure_started(ctx, cloud.scaler(id), data, task)


def ensure_started(ctx: Context, scaler: Scaler, data: Data, task: Task) -> None:
    """Want a machine for every rank that has not ended.

    Looked at in this order: a rank reports its end before it is wanted no more, so that fewer
    machines than ranks are wanted only if some did not come to anything.
    """
    fleet = scaler.fleet(ctx)
    left = sum(not record.ended for record in data.records(ctx, task.parallelism))
    if not fleet or fleet.wanted < left:
        scaler.scale(ctx, left)
    elif fleet.stuck:
        scaler.scale(ctx, fleet.wanted)


def stop_for_good(ctx: Context, cloud: Cloud, id: TaskId, force: bool) -> None:
    """With `force`, machines that are not gone in time end when their scaler is removed."""
    try:
        with ctx.step("Stopping machines"):
            _scale_to_none(ctx, cloud, id, _FORCE_WITHIN if force else _FLUSH_WITHIN)
    except Cancelled:
        raise
    except Transient:
        if not force:
            raise
        ctx.warn(
            f"Could not stop all machines within {_FORCE_WITHIN:.0f} seconds; terminating them"
        )
    except SojournError as error:
        if not force:
            raise
        ctx.warn(f"Could not stop all machines: {error.message}; terminating them")


def interrupt(
    ctx: Context, cloud: Cloud, id: TaskId, rank: int | None, *, notice: bool
) -> list[str]:
    """Take machines away as a spot market does: that of one rank, or all; returns them."""
    require(ctx, cloud, id)
    data = cloud.data(id)
    task = data.load(ctx)
    if rank is not None:
        check_rank(rank, task.parallelism)
    records = data.records(ctx, task.parallelism)
    fleet = cloud.scaler(id).fleet(ctx)
    alive = {machine.id for machine in fleet.machines} if fleet else set()
    victims = [
        record.machine
        for record in records
        if record.machine in alive and record.report is None and rank in (None, record.rank)
    ]
    if not victims:
        raise NotFound(
            "No machine is running the script",
            hint=f"Run `sojourn status {id}` for details.",
        )
    for machine in victims:
        with ctx.step(f"Interrupting machine {machine}"):
            cloud.scaler(id).interrupt(ctx, machine, notice=notice)
    return victims


def check_rank(rank: int, parallelism: int) -> None:
    """Refuse a rank that there is not."""
    if not 0 <= rank < parallelism:
        limit = "at least 0" if rank < 0 else f"at most {parallelism - 1}"
        raise InvalidInput("rank", f"must be {limit}, got {rank}")


def require(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Refuse a task of which nothing is there."""
    if not exists(ctx, cloud, id):
        raise NotFound.task(id)
