"""Where the machines of a gang are: near each other, and open to each other alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.az.networks import chosen_subnet
from sojourn.clouds.az.task_context import AzureResource

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.task import Task

__all__ = ["MEMBERS", "PlacementGroup", "has_members", "is_placed", "note_on_placement", "rules"]

MEMBERS = "Microsoft.Network/applicationSecurityGroups"
_MOST = 100  # machines that Azure puts near each other
_EVERYTHING = {
    "direction": "Inbound",
    "protocol": "*",
    "sourcePortRange": "*",
    "destinationPortRange": "*",
}


def is_placed(task: Task) -> bool:
    """Whether machines of a task are put near each other."""
    return task.gang and task.parallelism <= _MOST


def note_on_placement(task: Task) -> list[str]:
    """What a user should know about it."""
    if not task.gang or is_placed(task):
        return []
    return [
        f"Azure puts at most {_MOST} machines near each other, so the machines of this gang may be "
        "far from each other"
    ]


def has_members(task: Task) -> bool:
    """Whether machines of a task have to be known by a group of their own: in a network with
    machines of others. A network of the task's own has no others."""
    return task.gang and bool(chosen_subnet(task))


def rules(group: str) -> list[dict[str, Any]]:
    """Of a security group: all from members of the group to members, and nothing from others.

    Without the second, Azure lets all in that comes from the same network.
    """
    members = [{"id": group}]
    among = {
        **_EVERYTHING,
        "priority": 200,
        "access": "Allow",
        "sourceApplicationSecurityGroups": members,
        "destinationApplicationSecurityGroups": members,
    }
    others = {
        **_EVERYTHING,
        "priority": 300,
        "access": "Deny",
        "sourceAddressPrefix": "*",
        "destinationAddressPrefix": "*",
    }
    return [{"name": "gang", "properties": among}, {"name": "others", "properties": others}]


class PlacementGroup(AzureResource):
    """Has Azure put the machines of a gang near each other."""

    kind = "proximity placement group"
    type = "Microsoft.Compute/proximityPlacementGroups"

    def find(self) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        self._call("PUT", self.path, self._placed({"proximityPlacementGroupType": "Standard"}))
