"""Looking at a task: its state, and its log while it grows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.core.errors import AuthError, NotFound, QuotaError, SojournError, Transient
from sojourn.core.events import LogLine, StatusChanged
from sojourn.core.logpart import WHOLE, LogPart
from sojourn.core.status import INCOMPLETE, State, Status, of_ranks, task_status, uploading
from sojourn.engine.lifecycle import Deleted, exists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.activity import Activity
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Fleet
    from sojourn.core.status import RankRecord
    from sojourn.core.task import Task

__all__ = ["follow", "is_complete", "logs", "overview", "status"]

_WATCH_EVERY = 10.0  # seconds; machines take a sign of a follower as good for thrice as long
# Seconds for a machine to go that has nothing to do any more. One that may not even leave its group
# stays for longer; deleting the task takes it away.
_GO_WITHIN = 60.0
# Looks, and seconds at least, in which a task whose machines were stopped may turn out to be
# deleted: deleting begins with that.
_STOPPED_FOR_LOOKS = 3
_STOPPED_FOR = 3.0
# Seconds until a machine that restores a workdir says so: until then it only seems to run.
_RESTORES_WITHIN = 3.0
_PRINTING = frozenset({State.RUNNING, State.STORING})
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
    return _look(ctx, cloud, id)[0]


def _look(ctx: Context, cloud: Cloud, id: TaskId) -> tuple[Status, Fleet | None, Task | None]:
    """The state of a task, and what it was seen from."""
    data, scaler = cloud.data(id), cloud.scaler(id)
    # The order matters: a machine that ends between two looks must not seem lost.
    fleet = scaler.fleet(ctx)
    try:
        task = data.load(ctx)
    except NotFound as error:
        if not exists(ctx, cloud, id):
            raise NotFound.task(id) from error
        return INCOMPLETE, fleet, None
    if fleet is None:
        activity = data.uploading(ctx)
        return uploading(activity) if activity else INCOMPLETE, None, task
    now = _seen(data.records(ctx, task.parallelism), fleet)
    if now.recovering:
        # Lost, or started since the first look? The second one has what was started.
        fleet = scaler.fleet(ctx) or fleet
        now = _seen(data.records(ctx, task.parallelism), fleet)
    obstacle = scaler.obstacle(ctx) if now.state in _WAITING else ""
    if obstacle:
        now = replace(now, reason=f"{now.reason}: {obstacle}")
    return now, fleet, task


def _listed(ctx: Context, cloud: Cloud, id: TaskId) -> Status:
    """The state for a list: as long as a task costs something, it has not ended.

    Machines of a warm task stay on purpose.
    """
    now, fleet, task = _look(ctx, cloud, id)
    left = len(fleet.machines) if fleet else 0
    if not now.state.ended or not left or (task and task.warm):
        return now
    who = "1 machine is" if left == 1 else f"{left} machines are"
    return replace(now, state=State.RUNNING, reason=f"{now.state}, but {who} still there")


def _seen(records: Sequence[RankRecord], fleet: Fleet) -> Status:
    alive = {machine.id for machine in fleet.machines}
    return task_status(records, wanted=fleet.wanted, alive=alive)


def overview(ctx: Context, cloud: Cloud, ids: Sequence[TaskId]) -> Iterator[tuple[TaskId, Status]]:
    """Tasks of a cloud with their states; looks closer at those it cannot tell at a glance."""
    known = cloud.states(ctx, ids)
    for id in ids:  # noqa: A001
        try:
            yield id, known[id] if id in known else _listed(ctx, cloud, id)
        except NotFound:
            continue  # deleted meanwhile
        except SojournError as error:
            yield id, Status(State.QUEUED, f"could not read its state: {error.message}", None, ())


def logs(ctx: Context, cloud: Cloud, id: TaskId, part: LogPart = WHOLE) -> Iterator[LogLine]:
    """What was printed so far, in the order of its times."""
    data = cloud.data(id)
    data.load(ctx)
    for line in data.logs(ctx, data.cursor(), part):
        yield replace(line, id=str(id))


def follow(ctx: Context, cloud: Cloud, id: TaskId, part: LogPart = WHOLE) -> Iterator[LogLine]:
    """The lines there are, and then new ones as they are printed, until the task has ended.

    Changes of its state are emitted as events.
    """
    follower = _Follower(cloud, id, part)
    told = False
    while not follower.over:
        try:
            for line in follower.look(ctx):
                yield replace(line, id=str(id))
            if told:
                ctx.note("Connection restored")
                told = False
        except Transient as error:
            if not told:
                ctx.warn(f"{error.message}. The task keeps running; retrying")
                told = True
        if not follower.over:
            ctx.sleep(cloud.features.poll)


def _is_preparing(activity: Activity | None) -> bool:
    """Whether the script has not begun yet."""
    return activity is not None and not activity.doing.trouble


def _gist(status: Status) -> tuple[State, str]:
    """What is told once, and not again when it is a little further."""
    return status.state, status.activity.step if status.activity else status.reason


class _Follower:
    """Somebody who looks at a task again and again, and what was seen so far."""

    def __init__(self, cloud: Cloud, id: TaskId, part: LogPart) -> None:
        self._cloud = cloud
        self._id = id
        self._part = part
        self._data = cloud.data(id)
        self._cursor = self._data.cursor()
        self._watched = float("-inf")
        self._warned = False
        self._ended: float | None = None
        self._gone: float | None = None
        self._seen: Status | None = None
        self._told: tuple[State, str] | None = None  # the gist of it
        self._held: float | None = None  # since when it is not told that the task runs
        self._printed: dict[int, int] = {}  # the newest attempt of each rank that has lines
        self._attempts: dict[int, int] = {}
        self._machines: dict[tuple[int, int], str] = {}  # by rank and attempt
        self.over = False

    def look(self, ctx: Context) -> Iterator[LogLine]:
        """New lines; changes of the state are emitted."""
        try:
            if time.monotonic() - self._watched > _WATCH_EVERY:
                self._watch(ctx)
                self._watched = time.monotonic()
            now = self._status(ctx)
        except NotFound as error:
            if self._seen is None:
                raise
            raise Deleted(self._id) from error
        if not now.ranks and self._seen is not None:  # what was complete is so until it is deleted
            raise Deleted(self._id)
        if not now.ranks:
            raise NotFound(
                f"Task {self._id} has no log: {now.reason}",
                hint=f"Run `sojourn delete {self._id}` to delete it.",
            )
        over = now.state.ended and self._are_gone(ctx, now.state)
        if not now.state.ended:
            self._ended = self._gone = None
        # Read after the state: a machine writes the last of its log before it reports.
        begun = False
        for line in self._data.logs(ctx, self._cursor, self._part):
            self._announce(ctx, line.rank, line.attempt)
            begun = self._begin(ctx, now, line) or begun
            self._printed[line.rank] = max(line.attempt, self._printed.get(line.rank, 0))
            yield line
        self._part = self._part._replace(tail=None, since="")  # new lines are all meant
        if not begun or now.state.ended:  # else the lines are newer than this state
            self._tell(ctx, now)
        self.over = over

    def _begin(self, ctx: Context, now: Status, line: LogLine) -> bool:
        """Tell that the task runs before the first line of an attempt; whether that was new."""
        if self._printed.get(line.rank, 0) >= line.attempt or not self._begins(now, line):
            return False
        running = replace(now, state=State.RUNNING, reason="", exit_code=None, activity=None)
        runs = now.state is State.RUNNING and not _is_preparing(now.activity)
        self._held = None
        self._tell(ctx, now if runs else running, held=False)
        return True

    def _begins(self, now: Status, line: LogLine) -> bool:
        seen = self._seen
        if seen is None:
            return not now.state.ended  # else this is the log of a task that is over
        if seen.state.ended and now.state.ended:
            return False
        mine = [rank for rank in seen.ranks if rank.rank == line.rank]
        if seen.state in _PRINTING:
            return self._held is not None or any(_is_preparing(rank.activity) for rank in mine)
        return line.attempt > max((rank.attempt for rank in mine), default=0)  # else printed before

    def _status(self, ctx: Context) -> Status:
        now = status(ctx, self._cloud, self._id)
        self._machines.update({(r.rank, r.attempt): r.machine for r in now.ranks if r.machine})
        return self._without_old(now)

    def _without_old(self, now: Status) -> Status:
        """The same, but a rank that has printed is prepared: its machine tells that later."""
        ranks = [
            replace(rank, activity=None, reason="")
            if _is_preparing(rank.activity) and rank.attempt <= self._printed.get(rank.rank, -1)
            else rank
            for rank in now.ranks
        ]
        return of_ranks(ranks) if ranks != list(now.ranks) else now

    def _watch(self, ctx: Context) -> None:
        """Without it lines come later, but they come: one may read who must not write."""
        try:
            self._data.watch(ctx)
        except (AuthError, QuotaError) as error:
            if not self._warned:
                ctx.warn(f"New log lines may appear a few seconds late: {error.message}")
            self._warned = True
        except NotFound:
            return  # its state will tell

    def _are_gone(self, ctx: Context, state: State) -> bool:
        """Whether the machines of a task that has ended are, or take too long to go."""
        now = time.monotonic()
        self._ended = self._ended or now
        if state is not State.STOPPED and self._data.load(ctx).warm:
            return True  # they stay on purpose
        fleet = self._cloud.scaler(self._id).fleet(ctx)
        if now - self._ended <= _GO_WITHIN and fleet is not None and fleet.machines:
            return False
        self._gone = self._gone or now
        if state is not State.STOPPED or self._seen is None:
            return True
        patience = max(_STOPPED_FOR, _STOPPED_FOR_LOOKS * self._cloud.features.poll)
        return now - self._gone >= patience

    def _tell(self, ctx: Context, now: Status, *, held: bool = True) -> None:
        """Tell of a change. `held`: not yet that the task runs if it may be restoring."""
        self._seen = now
        if now.activity and now.activity.total and not now.activity.doing.trouble:
            ctx.progress(now.activity.step.capitalize(), now.activity.done, now.activity.total)
        if not (held and self._may_restore(now)):
            if self._held is not None and now.state.ended:
                self._emit(ctx, replace(now, state=State.RUNNING, reason="", exit_code=None))
            self._held = None
            self._emit(ctx, now)
        for rank in now.ranks:
            self._announce(ctx, rank.rank, rank.attempt)

    def _may_restore(self, now: Status) -> bool:
        if now.state is not State.RUNNING or now.activity:
            return False
        if self._told is None or self._told[0] in _PRINTING:
            return False
        self._held = self._held or time.monotonic()
        return time.monotonic() - self._held < _RESTORES_WITHIN

    def _emit(self, ctx: Context, now: Status) -> None:
        if _gist(now) != self._told:
            ctx.emit(StatusChanged(str(self._id), str(now.state), now.reason, now.exit_code))
        self._told = _gist(now)

    def _announce(self, ctx: Context, rank: int, attempt: int) -> None:
        """Tell of a new attempt, before the first of its lines."""
        before = self._attempts.get(rank, 0)
        if 0 < before < attempt and self._part.takes(rank, attempt):
            if (rank, attempt) not in self._machines:
                self._status(ctx)  # it began since the last look
            former, machine = (self._machines.get((rank, n), "") for n in (before, attempt))
            # The survivors of a gang start again where they are, and so does one that rebooted.
            same = former and former == machine
            how = "restarted on the same machine" if same else "resumed on a new machine"
            ctx.note(f"Rank {rank} {how} (attempt {attempt})")
        self._attempts[rank] = max(before, attempt)
