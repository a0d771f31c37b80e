"""A task in its account, and what all its resources have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import store_address, tags
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.locations import Location, Locations
from sojourn.clouds.aws.machines import Offer
from sojourn.clouds.aws.user_data import ON_MACHINE
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.task_context import TaskContext

if TYPE_CHECKING:
    from sojourn.storage.store import StoreAddress

__all__ = ["AwsContext", "AwsResource"]


@dataclass(frozen=True)
class AwsContext(TaskContext[Account, Location, Offer]):
    """A task in its account."""

    ON_MACHINE = ON_MACHINE

    locations: Locations

    @property
    def tags(self) -> dict[str, str]:
        return tags.tags_of(self.id, self.require_task())

    def call(self, what: str, service: str, operation: str, **arguments: Any) -> Any:
        """An operation in the task's region."""
        return self.account.call(what, service, self.location.region, operation, **arguments)

    def ensure_ours(self) -> None:
        self.locations.ensure_ours(self.location.bucket)

    def _address(self, folder: str) -> StoreAddress:
        return store_address.address(self.account, replace(self.location, folder=folder))


class AwsResource(TaskResource[AwsContext]):
    """What resources of AWS have in common beside that. `service`: most are of EC2."""

    service = "ec2"

    def _call(self, operation: str, **arguments: Any) -> Any:
        return self._context.call(self.title, self.service, operation, **arguments)

    def _tagged(self, kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": tags.to_list(self._context.tags)}]
