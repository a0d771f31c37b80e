"""A task and where it is, and what all resources of this cloud have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import store_address, tags
from sojourn.clouds.az.user_data import ON_MACHINE
from sojourn.clouds.az.watched import WatchedStore
from sojourn.clouds.vm.agent_files import Luggage
from sojourn.clouds.vm.resource import TaskResource
from sojourn.core.errors import NotFound
from sojourn.storage.store import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.locations import Location, Locations
    from sojourn.clouds.az.machines import Offer, Offers
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.storage.store import Store

__all__ = ["AzureResource", "Deployment"]


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

    @property
    def group(self) -> str:
        """The id of its resource group."""
        return f"{self.account.scope}/resourceGroups/{self.name}"

    def path(self, kind: str) -> str:
        """The id of a resource of this type that has the task's name."""
        return f"{self.group}/providers/{kind}/{self.name}"

    @property
    def container(self) -> str:
        """The id of the container that its store is in."""
        location = self.location
        if location.contained:
            account = self.locations.account_id(location.account)
        else:
            kind = "Microsoft.Storage/storageAccounts"
            account = f"{self.group}/providers/{kind}/{location.account}"
        return f"{account}/blobServices/default/containers/{location.container}"

    def luggage(self) -> Luggage:
        """What machines have to fetch."""
        image = self.offer.image
        architecture = {"Arm64": "aarch64"}.get(image.architecture, "x86_64")
        return Luggage(image.pythons, architecture, ON_MACHINE)

    def store(self) -> Store:
        """The task's store, with the user's own credentials. Not there: raises NotFound."""
        if not self.location.contained:
            self.locations.ensure_ours(self.id, self.container.partition("/blobServices/")[0])
        opened = open_store(store_address.address(self.account, self.location))
        return WatchedStore(opened, self._look)

    def store_in(self, folder: str) -> Store:
        """Another folder in the container of the task's store."""
        return open_store(
            store_address.address(self.account, replace(self.location, folder=folder))
        )

    def _look(self) -> None:
        """What is on its way out does not come back. A creation that was killed early has no
        storage account: nothing would ever answer."""
        if self.locations.look(self.id)["properties"]["provisioningState"] == "Deleting":
            raise NotFound(f"Task {self.id} is being deleted")
        if not self.location.contained:
            account = self.container.partition("/blobServices/")[0]
            self.locations.ensure_ours(self.id, account, again=True)


class AzureResource(TaskResource[Deployment]):
    """What resources of Azure have in common beside that. All are in the task's resource group,
    and go with it: what has nothing else to take with it need not be deleted for itself."""

    type = ""

    @property
    def path(self) -> str:
        """Its id."""
        return self._deployment.path(self.type)

    def _find(self) -> bool:
        self._call("GET", self.path)
        return True

    def delete(self, ctx: Context) -> None:
        """It goes with the group."""

    def _call(
        self, method: str, path: str, body: Any = None, *, query: Mapping[str, str] | None = None
    ) -> Any:
        return self._deployment.account.call(self.title, method, path, body, query=query)

    def _follow(
        self,
        ctx: Context,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        account = self._deployment.account
        return account.follow(ctx, self.title, method, path, body, query=query)

    def _placed(self, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The content of a resource with these properties."""
        location, marks = self._deployment.location.region, self._deployment.tags
        return {"location": location, "tags": marks, "properties": properties, **more}
