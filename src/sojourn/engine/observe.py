"""Looking at a task: its state, and its log while it grows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.core.errors import NotFound, SojournError
from sojourn.core.events import LogLine, StatusChanged
from sojourn.core.status import INCOMPLETE, State, Status, task_status
from sojourn.engine.lifecycle import exists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud

__all__ = ["follow", "is_complete", "logs", "overview", "status"]

_WATCH_EVERY = 10.0  # seconds; machines take a sign of a follower as good for thrice as long


_WAITING = frozenset({State.QUEUED, State.RECOVERING, State.STOPPED})


def is_complete(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether a task was created to the end, and not only begun."""
    try:
        cloud.data(id).load(ctx)
    except NotFound:
        return False
    return cloud.scaler(id).read(ctx)


def status(ctx: Context, cloud: Cloud, id: TaskId) -> Status:
    """The state of a task. Absent: raises NotFound."""
    data, scaler = cloud.data(id), cloud.scaler(id)
    # The order matters: a machine that ends between two looks must not seem lost.
    fleet = scaler.fleet(ctx)
    try:
        task = data.load(ctx)
    except NotFound:
        if not exists(ctx, cloud, id):
            raise
        return INCOMPLETE
    if fleet is None:
        return INCOMPLETE
    alive = {machine.id for machine in fleet.machines}
    now = task_status(data.records(ctx, task.parallelism), wanted=fleet.wanted, alive=alive)
    obstacle = scaler.obstacle(ctx) if now.state in _WAITING else ""
    return replace(now, reason=f"{now.reason}: {obstacle}") if obstacle else now


def overview(ctx: Context, cloud: Cloud) -> Iterator[tuple[TaskId, Status]]:
    """All tasks of a cloud with their states; looks closer at those it cannot tell at a glance."""
    ids = list(cloud.tasks(ctx))
    known = cloud.states(ctx, ids)
    for id in ids:  # noqa: A001
        try:
            yield id, known[id] if id in known else status(ctx, cloud, id)
        except NotFound:
            continue  # deleted meanwhile
        except SojournError as error:
            yield id, Status(State.QUEUED, f"its state cannot be read: {error.message}", None, ())


def logs(ctx: Context, cloud: Cloud, id: TaskId) -> Iterator[LogLine]:
    """All that was printed so far, in the order of its times."""
    data = cloud.data(id)
    data.load(ctx)
    yield from data.logs(ctx, data.cursor())


def follow(ctx: Context, cloud: Cloud, id: TaskId) -> Iterator[LogLine]:
    """All lines, and then new ones as they are printed, until the task has ended.

    Changes of its state are emitted as events.
    """
    data = cloud.data(id)
    cursor = data.cursor()
    watched = float("-inf")
    seen: Status | None = None
    attempts: dict[int, int] = {}
    while True:
        if time.monotonic() - watched > _WATCH_EVERY:
            data.watch(ctx)
            watched = time.monotonic()
        now = status(ctx, cloud, id)
        if not now.ranks:
            raise NotFound(f"There is nothing to follow: {now.reason}", hint=f"sojourn delete {id}")
        over = now.state.ended and not _machines(ctx, cloud, id)
        # Read after the state: a machine writes the last of its log before it reports.
        yield from data.logs(ctx, cursor)
        if seen is None or (now.state, now.reason) != (seen.state, seen.reason):
            seen = now
            ctx.emit(StatusChanged(str(id), str(now.state), now.reason, now.exit_code))
        _tell_of_respawns(ctx, now, attempts)
        if over:
            return
        ctx.sleep(cloud.features.poll)


def _machines(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether there are any."""
    fleet = cloud.scaler(id).fleet(ctx)
    return fleet is not None and bool(fleet.machines)


def _tell_of_respawns(ctx: Context, now: Status, attempts: dict[int, int]) -> None:
    for rank in now.ranks:
        if 0 < attempts.get(rank.rank, 0) < rank.attempt:
            ctx.note(f"The machine of rank {rank.rank} was lost; attempt {rank.attempt} goes on")
        attempts[rank.rank] = rank.attempt
