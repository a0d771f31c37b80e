"""Looking at a task: its state, and its log while it grows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.core.errors import AuthError, NotFound, QuotaError, SojournError, Transient
from sojourn.core.events import LogLine, StatusChanged
from sojourn.core.status import INCOMPLETE, State, Status, task_status
from sojourn.engine.lifecycle import exists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud

__all__ = ["follow", "is_complete", "logs", "overview", "status"]

_WATCH_EVERY = 10.0  # seconds; machines take a sign of a follower as good for thrice as long
# Seconds for a machine to go that has nothing to do any more. One that may not even leave its group
# stays for longer; deleting the task takes it away.
_GO_WITHIN = 60.0
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
    except NotFound as error:
        if not exists(ctx, cloud, id):
            raise NotFound(
                f"There is no task {id}", hint="`sojourn list` shows all there are."
            ) from error
        return INCOMPLETE
    if fleet is None:
        return INCOMPLETE
    alive = {machine.id for machine in fleet.machines}
    now = task_status(data.records(ctx, task.parallelism), wanted=fleet.wanted, alive=alive)
    obstacle = scaler.obstacle(ctx) if now.state in _WAITING else ""
    return replace(now, reason=f"{now.reason}: {obstacle}") if obstacle else now


def overview(ctx: Context, cloud: Cloud, ids: Sequence[TaskId]) -> Iterator[tuple[TaskId, Status]]:
    """Tasks of a cloud with their states; looks closer at those it cannot tell at a glance."""
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
    follower = _Follower(cloud, id)
    told = False
    while not follower.over:
        try:
            yield from follower.look(ctx)
            if told:
                ctx.note("It is back")
                told = False
        except Transient as error:
            if not told:
                ctx.warn(f"{error.message}. The task goes on, and so does this once it is back")
                told = True
        if not follower.over:
            ctx.sleep(cloud.features.poll)


class _Follower:
    """Somebody who looks at a task again and again, and what was seen so far."""

    def __init__(self, cloud: Cloud, id: TaskId) -> None:
        self._cloud = cloud
        self._id = id
        self._data = cloud.data(id)
        self._cursor = self._data.cursor()
        self._watched = float("-inf")
        self._warned = False
        self._ended: float | None = None
        self._seen: Status | None = None
        self._attempts: dict[int, int] = {}
        self.over = False

    def look(self, ctx: Context) -> Iterator[LogLine]:
        """New lines; changes of the state are emitted."""
        try:
            if time.monotonic() - self._watched > _WATCH_EVERY:
                self._watch(ctx)
                self._watched = time.monotonic()
            now = status(ctx, self._cloud, self._id)
        except NotFound as error:
            if self._seen is None:
                raise
            raise self._deleted() from error
        if not now.ranks and self._seen is not None:  # what was complete is so until it is deleted
            raise self._deleted()
        if not now.ranks:
            raise NotFound(
                f"There is nothing to follow: {now.reason}", hint=f"sojourn delete {self._id}"
            )
        over = now.state.ended and self._are_gone(ctx)
        # Read after the state: a machine writes the last of its log before it reports.
        for line in self._data.logs(ctx, self._cursor):
            self._announce(ctx, line.rank, line.attempt)
            yield line
        self._tell(ctx, now)
        self.over = over

    def _deleted(self) -> NotFound:
        hint = "`sojourn list` shows all there are."
        return NotFound(f"{self._id} was deleted meanwhile", hint=hint)

    def _watch(self, ctx: Context) -> None:
        """Without it lines come later, but they come: one may read who must not write."""
        try:
            self._data.watch(ctx)
        except (AuthError, QuotaError) as error:
            if not self._warned:
                ctx.warn(f"New lines are shown some seconds late: {error.message}")
            self._warned = True

    def _are_gone(self, ctx: Context) -> bool:
        """Whether the machines of a task that has ended are, or take too long to go."""
        self._ended = self._ended or time.monotonic()
        fleet = self._cloud.scaler(self._id).fleet(ctx)
        late = time.monotonic() - self._ended > _GO_WITHIN
        return late or fleet is None or not fleet.machines

    def _tell(self, ctx: Context, now: Status) -> None:
        seen, self._seen = self._seen, now
        if seen is None or (now.state, now.reason) != (seen.state, seen.reason):
            ctx.emit(StatusChanged(str(self._id), str(now.state), now.reason, now.exit_code))
        for rank in now.ranks:
            self._announce(ctx, rank.rank, rank.attempt)

    def _announce(self, ctx: Context, rank: int, attempt: int) -> None:
        """Tell of a new attempt, before the first of its lines."""
        before = self._attempts.get(rank, 0)
        if 0 < before < attempt:
            ctx.note(f"Another machine goes on with rank {rank}: attempt {attempt}")
        self._attempts[rank] = max(before, attempt)
