"""A task and where it is, and what all resources of this cloud have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import store_address, tags
from sojourn.clouds.aws.user_data import ON_MACHINE
from sojourn.clouds.vm.agent_files import Luggage
from sojourn.clouds.vm.resource import TaskResource
from sojourn.core.errors import NotFound
from sojourn.storage.store import open_store

if TYPE_CHECKING:
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.locations import Location, Locations
    from sojourn.clouds.aws.machines import Offer, Offers
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.storage.store import Store

__all__ = ["AwsResource", "Deployment", "is_contained"]


@dataclass(frozen=True)
class Deployment:
    """A task and where it is; what all its resources share. `task` is None when it is unknown."""

    account: Account
    locations: Locations
    offers: Offers
    id: TaskId
    task: Task | None

    @property
    def name(self) -> str:
        return str(self.id)

    @property
    def location(self) -> Location:
        """Where it is. Nowhere: raises NotFound."""
        return self.locations.of(self.id, self.task)

    @property
    def wanted(self) -> Task:
        """The task, where it has to be known."""
        if self.task is None:
            raise ValueError("this verb needs the task")
        return self.task

    @property
    def offer(self) -> Offer:
        return self.offers.find(self.wanted)

    @property
    def tags(self) -> dict[str, str]:
        return tags.tags_of(self.id, self.wanted)

    def call(self, what: str, service: str, operation: str, **arguments: Any) -> Any:
        """An operation in the task's region."""
        return self.account.call(what, service, self.location.region, operation, **arguments)

    def luggage(self) -> Luggage:
        """What machines have to fetch."""
        image = self.offer.image
        architecture = {"arm64": "aarch64"}.get(image.architecture, "x86_64")
        return Luggage(image.pythons, architecture, ON_MACHINE)

    def store(self) -> Store:
        """The task's store, with the user's own credentials."""
        return self.store_in(self.location.folder)

    def store_in(self, folder: str) -> Store:
        """Another folder in the bucket of the task's store."""
        location = replace(self.location, folder=folder)
        if not location.contained:
            self.locations.ensure_ours(location.bucket)
        return open_store(store_address.address(self.account, location))


class AwsResource(TaskResource[Deployment]):
    """What resources of AWS have in common beside that."""

    def _tagged(self, kind: str) -> list[dict[str, Any]]:
        return [{"ResourceType": kind, "Tags": tags.to_list(self._deployment.tags)}]


def is_contained(deployment: Deployment) -> bool:
    """Whether its store is in a bucket of the user; of one that is nowhere, nothing is."""
    try:
        return deployment.location.contained
    except NotFound:
        return False
