"""The state of a task from its group alone, for those who list many tasks.

Machines mark at the group how their ranks ended. Where these marks do not add up with the machines
that the group wants, as for the moment in which a machine leaves, the group does not tell, and the
store is asked. A machine that is in service counts as running: whether its script has begun, the
store knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from sojourn.clouds.vm.on_machine import marks
from sojourn.core.status import (
    INCOMPLETE,
    MACHINES_AT_MOST,
    RankRecord,
    RankStatus,
    State,
    of_ranks,
    rank_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sojourn.core.ids import TaskId
    from sojourn.core.report import Report
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["MARKED", "STOPPED", "GroupView", "can_mark", "status_of", "statuses"]

MARKED = "sojourn:marked"  # a tag of a group; "yes": its machines tell how ranks ended
STOPPED = "sojourn:stopped"  # another; "yes": somebody stopped it, and nobody started it since
G = TypeVar("G")


def can_mark(task: Task, room: int = marks.MOST) -> bool:
    """Whether machines of a task can tell at their group: with rights of ours, and not too many.

    `room`: how many tags there can be beside the user's.
    """
    return not task.permission_set and task.parallelism <= min(marks.MOST, room)


@dataclass(frozen=True)
class GroupView:
    """What a group shows. `ranks`: the most machines it may have; `wanted`: those it has to have.

    `marked`: its machines mark how ranks ended. `stopped`: somebody stopped it, and nobody started
    it since. `going`: it is being deleted. `storing`: ranks whose
    script has ended, and whose results could not be stored so far.
    """

    ranks: int
    wanted: int
    reports: Mapping[int, Report] = field(default_factory=dict)
    marked: bool = False
    stopped: bool = False
    going: bool = False
    serving: Sequence[str] = ()  # machines that run
    starting: Sequence[str] = ()
    leaving: Sequence[str] = ()
    storing: Collection[int] = ()


def statuses(
    ids: Sequence[TaskId], groups: Mapping[str, G], status: Callable[[G], Status | None]
) -> dict[TaskId, Status]:
    """Of tasks that their groups, by name, tell the state of; without one, it is incomplete."""
    told = {each: status(groups[str(each)]) if str(each) in groups else INCOMPLETE for each in ids}
    return {each: found for each, found in told.items() if found is not None}


def status_of(group: GroupView) -> Status | None:
    """The state that a group tells; None: it does not."""
    if group.ranks > MACHINES_AT_MOST:
        return None  # nobody of us made it so
    if not group.ranks or group.going:
        return None
    if any(rank not in group.reports for rank in group.storing):
        return None  # whether they are stored by now, the store knows
    left = [rank for rank in range(group.ranks) if rank not in group.reports]
    if (not left or group.wanted == 0) and (group.serving or group.starting or group.leaving):
        return None  # it would have ended, but for its machines: a closer look tells
    if left and group.wanted == 0 and not (group.marked and group.stopped):
        return None  # it ended, or its machines did so without telling
    unended = _unended(group, left)
    if unended is None:
        return None
    ended = [
        rank_status(RankRecord(rank, report.attempt, "", report), wanted=0, alive=())
        for rank, report in group.reports.items()
        if rank < group.ranks
    ]
    return of_ranks(sorted([*ended, *unended], key=lambda rank: rank.rank))


def _unended(group: GroupView, left: list[int]) -> list[RankStatus] | None:
    """The ranks that have not ended. Some with and some without a machine: nobody knows which."""
    if group.wanted == 0:
        return [rank_status(RankRecord(rank), wanted=0, alive=()) for rank in left]
    if len(left) != group.wanted:
        return None
    if len(group.serving) == len(left):
        machine = group.serving[0] if len(left) == 1 else ""
        return [RankStatus(rank, State.RUNNING, machine=machine) for rank in left]
    if group.serving:
        return None
    alive = list(group.starting)
    return [rank_status(RankRecord(rank), wanted=group.wanted, alive=alive) for rank in left]
