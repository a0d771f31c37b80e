"""Where the machines of a gang are: near each other, in one zone."""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.clouds.aws.errors import ignoring
from sojourn.clouds.aws.resources import SecurityGroup
from sojourn.clouds.aws.task_context import AwsResource
from sojourn.clouds.vm.waiting import PATIENCE, pause
from sojourn.core.errors import Conflict, NotFound

if TYPE_CHECKING:
    from sojourn.clouds.aws.task_context import AwsContext
    from sojourn.core.context import Context

__all__ = ["PlacementGroup", "is_placed", "subnets_of"]


def is_placed(context: AwsContext) -> bool:
    """Whether machines of a task are in a placement group: not all types can be."""
    return context.require_task().gang and context.offer.can_cluster


def subnets_of(context: AwsContext) -> tuple[str, ...]:
    """Those for machines of a task. A gang's are of one zone, always the same one of the task.

    The zone depends on the task's name: another task may get another one, which has capacity.
    """
    network = context.offer.network
    if not context.require_task().gang:
        return network.ids
    zones = sorted(set(network.zones))
    chosen = zones[zlib.crc32(context.name.encode()) % len(zones)]
    pairs = zip(network.ids, network.zones, strict=True)
    return tuple(subnet for subnet, zone in pairs if zone == chosen)


class PlacementGroup(AwsResource):
    """Has AWS put the machines of a gang near each other."""

    stage = 2
    kind = "placement group"

    def find(self) -> bool:
        return False  # never the last thing that is left: the security group outlives it

    def create(self, ctx: Context) -> None:
        if not is_placed(self._context):
            return
        with ignoring("InvalidPlacementGroup.Duplicate"):
            self._call(
                "create_placement_group",
                GroupName=self._name,
                Strategy="cluster",
                TagSpecifications=self._tagged("placement-group"),
            )

    def delete(self, ctx: Context) -> None:
        """Who has no gangs need not be allowed to: the security group knows whether it was one."""
        patience = ctx.within(PATIENCE * 5)
        with suppress(NotFound):
            while SecurityGroup(self._context).connects():
                try:
                    self._call("delete_placement_group", GroupName=self._name)
                    return
                except Conflict as error:  # the last machine has not gone yet
                    pause(patience, 2, error)
