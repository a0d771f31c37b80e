"""The states of many tasks from their scale sets alone, of which one call tells many.

Machines write how their ranks ended into the tags of the scale set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.az.tags import MOST
from sojourn.clouds.vm import listing
from sojourn.clouds.vm.listing import MARKED, STOPPED, GroupView, status_of, statuses
from sojourn.clouds.vm.on_machine import marks
from sojourn.clouds.vm.tags import user_tags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.az.account import Account
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["can_mark", "first_tags", "states"]

RANKS = "sojourn:ranks"  # how many there are


def can_mark(task: Task) -> bool:
    """Whether machines of a task can tell by tags."""
    return listing.can_mark(task, MOST - len(user_tags(task)))


def first_tags(task: Task) -> dict[str, str]:
    """What a scale set tells when it is new, beside what all resources do."""
    marked = {MARKED: "yes"} if can_mark(task) else {}
    return {RANKS: str(task.parallelism), **marked}


def states(ctx: Context, account: Account, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
    """Of all tasks that their scale sets tell the state of."""
    ctx.check()
    path = "providers/Microsoft.Compute/virtualMachineScaleSets"
    sets = {str(each["name"]): each for each in account.pages("scale sets", path)}
    return statuses(ids, sets, _status)


def _status(scale_set: Any) -> Status | None:
    """The state that a scale set tells; None: it does not."""
    tags, state = scale_set.get("tags") or {}, scale_set["properties"]["provisioningState"]
    ranks, wanted = tags.get(RANKS, ""), int(scale_set["sku"].get("capacity") or 0)
    if not marks.number(ranks) or state == "Failed":
        return None  # a machine could not be made: whoever looks closer sees why
    there = [""] * wanted  # which ones, it does not tell
    return status_of(
        GroupView(
            ranks=marks.number(ranks),
            wanted=wanted,
            reports=marks.read(tags),
            storing=marks.storing(tags),
            marked=tags.get(MARKED) == "yes",
            stopped=tags.get(STOPPED) == "yes",
            going=state == "Deleting",
            serving=there if state == "Succeeded" else (),
            starting=there if state in ("Creating", "Updating") else (),
        )
    )
