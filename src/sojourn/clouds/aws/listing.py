"""The states of many tasks from their groups alone, of which one call tells a hundred.

Machines write how their ranks ended into the group's tags.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws.tags import MOST
from sojourn.clouds.vm import listing
from sojourn.clouds.vm.listing import MARKED, STOPPED, GroupView, status_of, statuses
from sojourn.clouds.vm.on_machine import marks
from sojourn.clouds.vm.tags import user_tags
from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.locations import Locations
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["can_mark", "states", "tag"]

_AT_ONCE = 100  # groups in an answer


def can_mark(task: Task) -> bool:
    """Whether machines of a task can tell by tags."""
    return listing.can_mark(task, MOST - len(user_tags(task)))


def tag(group: str, key: str, value: str) -> dict[str, Any]:
    """A tag as Auto Scaling wants it."""
    return {
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": False,
        "ResourceId": group,
        "ResourceType": "auto-scaling-group",
    }


def states(
    ctx: Context, account: Account, locations: Locations, ids: Sequence[TaskId]
) -> dict[TaskId, Status]:
    """Of all tasks that their groups tell the state of."""
    regions: dict[str, list[TaskId]] = defaultdict(list)
    for id in ids:  # noqa: A001
        try:
            regions[locations.of(id, None).region].append(id)
        except NotFound:
            continue  # deleted meanwhile
    found: dict[TaskId, Status] = {}
    for region, here in regions.items():
        for start in range(0, len(here), _AT_ONCE):
            ctx.check()
            some = here[start : start + _AT_ONCE]
            groups = _groups(account, region, list(map(str, some)))
            found |= statuses(some, groups, _status)
    return found


def _groups(account: Account, region: str, names: list[str]) -> dict[str, Any]:
    answer = account.call(
        "groups",
        "autoscaling",
        region,
        "describe_auto_scaling_groups",
        AutoScalingGroupNames=names,
        MaxRecords=_AT_ONCE,
    )
    return {group["AutoScalingGroupName"]: group for group in answer["AutoScalingGroups"]}


def _status(group: Any) -> Status | None:
    """The state that a group tells; None: it does not."""
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
    return status_of(
        GroupView(
            ranks=int(group["MaxSize"]),
            wanted=int(group["DesiredCapacity"]),
            reports=marks.read(tags),
            storing=marks.storing(tags),
            marked=tags.get(MARKED) == "yes",
            stopped=tags.get(STOPPED) == "yes",
            going=bool(group.get("Status")),
            serving=_members(group, "InService"),
            starting=_members(group, "Pending"),
            leaving=_members(group, "Terminating"),
        )
    )


def _members(group: Any, state: str) -> list[str]:
    found = [m for m in group.get("Instances", ()) if m["LifecycleState"].startswith(state)]
    return [str(member["InstanceId"]) for member in found]
