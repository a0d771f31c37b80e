"""The one state machine, on every cloud.

queued -> provisioning -> running -> succeeded | failed | timed-out | stopped
                             ^ |
                             | v
                          recovering      a machine was lost; the next attempt is on its way

Between running and an end, `storing`: the script has ended, but its results have no room yet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from sojourn.core.report import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sojourn.core.activity import Activity

__all__ = [
    "INCOMPLETE",
    "MACHINES_AT_MOST",
    "RankRecord",
    "RankStatus",
    "State",
    "Status",
    "of_ranks",
    "rank_status",
    "task_status",
    "uploading",
]


MACHINES_AT_MOST = 1000  # of a task


class State(str, Enum):
    """Where a task or one of its ranks is."""

    QUEUED = "queued"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    RECOVERING = "recovering"
    STORING = "storing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    STOPPED = "stopped"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen unless somebody asks for it."""
        return self in _ENDED

    def __str__(self) -> str:
        return self.value


_ENDED = frozenset({State.SUCCEEDED, State.FAILED, State.TIMED_OUT, State.STOPPED})
_BY_OUTCOME = {
    Outcome.SUCCEEDED: State.SUCCEEDED,
    Outcome.FAILED: State.FAILED,
    Outcome.TIMED_OUT: State.TIMED_OUT,
}


@dataclass(frozen=True)
class RankStatus:
    """One of the parallel copies. `attempt` is 0 before the first; `machine` the last to try.

    `began` and `ended`: when that attempt did, as its machine wrote it; empty if that is not known.
    """

    rank: int
    state: State
    attempt: int = 0
    exit_code: int | None = None
    reason: str = ""
    machine: str = ""
    activity: Activity | None = None
    began: str = ""
    ended: str = ""


@dataclass(frozen=True)
class Status:
    """A task as observed. `activity` is what the reason tells of, if somebody wrote it down."""

    state: State
    reason: str
    exit_code: int | None
    ranks: tuple[RankStatus, ...]
    activity: Activity | None = None

    @property
    def recovering(self) -> bool:
        """Whether any rank waits for another machine."""
        return any(rank.state is State.RECOVERING for rank in self.ranks)

    @property
    def counts(self) -> dict[str, int]:
        """How many ranks are running, succeeded and failed, as the old provider counted."""
        states = [rank.state for rank in self.ranks]
        return {
            "running": states.count(State.RUNNING) + states.count(State.STORING),
            "succeeded": states.count(State.SUCCEEDED),
            "failed": states.count(State.FAILED) + states.count(State.TIMED_OUT),
        }


INCOMPLETE = Status(
    State.QUEUED, "creation did not finish; create the task again or delete it", None, ()
)


@dataclass(frozen=True)
class RankRecord:
    """What the store knows of a rank: its newest attempt, and the report on it if it is over."""

    rank: int
    attempt: int = 0
    machine: str = ""
    report: Report | None = None
    activity: Activity | None = None
    began: str = ""

    @property
    def ended(self) -> bool:
        """Whether the script of this rank has ended for good."""
        return self.report is not None and self.report.outcome.final


def rank_status(record: RankRecord, *, wanted: int, alive: Collection[str]) -> RankStatus:
    """The state of one rank, given how many machines are wanted and which are alive."""
    base = RankStatus(record.rank, State.QUEUED, record.attempt, machine=record.machine)
    report = record.report
    if report is not None and report.outcome.final:
        return RankStatus(
            record.rank,
            _BY_OUTCOME[report.outcome],
            record.attempt,
            report.exit_code,
            report.reason,
            record.machine,
            began=report.started or record.began,
            ended=report.ended,
        )
    if wanted == 0:
        stopped = _with(base, State.STOPPED, "run `sojourn start` to resume it")
        if report is None or not report.ended:
            return stopped  # its last attempt has no end, or there was none
        return replace(stopped, began=report.started or record.began, ended=report.ended)
    if report is None and record.machine in alive:
        activity = record.activity
        told = activity.text if activity else ""
        ended = activity is not None and activity.doing.after_script
        return replace(
            base,
            state=State.STORING if ended else State.RUNNING,
            exit_code=activity.exit_code if activity else None,
            reason=told,
            activity=activity,
            began=record.began,
        )
    if record.attempt:
        reason = report.reason if report else "the machine was lost"
        return _with(base, State.RECOVERING, f"{reason}; waiting for a new machine")
    if alive:
        return _with(base, State.PROVISIONING, "the machine is starting")
    return _with(base, State.QUEUED, "waiting for a machine")


def _with(base: RankStatus, state: State, reason: str) -> RankStatus:
    return RankStatus(base.rank, state, base.attempt, None, reason, base.machine)


_WORST_FIRST = (
    State.RUNNING,
    State.RECOVERING,
    State.PROVISIONING,
    State.QUEUED,
    State.STORING,
    State.STOPPED,
    State.FAILED,
    State.TIMED_OUT,
    State.SUCCEEDED,
)


def task_status(records: Sequence[RankRecord], *, wanted: int, alive: Collection[str]) -> Status:
    """The state of a task, from what is known of its ranks."""
    return of_ranks([rank_status(record, wanted=wanted, alive=alive) for record in records])


def of_ranks(ranks: Sequence[RankStatus]) -> Status:
    """The state of a task: that of its rank which has the furthest to go, or went worst."""
    leading = min(ranks, key=lambda rank: (_WORST_FIRST.index(rank.state), not rank.activity))
    reason = leading.reason
    if len(ranks) > 1 and reason:
        reason = f"rank {leading.rank}: {reason}"
    return Status(leading.state, reason, leading.exit_code, tuple(ranks), leading.activity)


def uploading(activity: Activity) -> Status:
    """Of a task that somebody is creating just now."""
    return Status(State.QUEUED, activity.text, None, (), activity)
