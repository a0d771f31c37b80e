"""A task in its subscription, and what all its resources have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import store_address, tags
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.locations import Location, Locations
from sojourn.clouds.az.machines import Offer
from sojourn.clouds.az.user_data import ON_MACHINE
from sojourn.clouds.az.watched import WatchedStore
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.task_context import TaskContext
from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.context import Context
    from sojourn.storage.store import Store, StoreAddress

    Query = Mapping[str, str] | None

__all__ = ["AzureContext", "AzureResource"]


@dataclass(frozen=True)
class AzureContext(TaskContext[Account, Location, Offer]):
    """A task in its subscription."""

    ON_MACHINE = ON_MACHINE

    locations: Locations

    @property
    def tags(self) -> dict[str, str]:
        return tags.tags_of(self.id, self.require_task())

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

    def _address(self, folder: str) -> StoreAddress:
        return store_address.address(self.account, replace(self.location, folder=folder))

    def store(self) -> Store:
        """Not there: raises NotFound."""
        return WatchedStore(super().store(), self._look)

    def ensure_ours(self, *, again: bool = False) -> None:
        account = self.container.partition("/blobServices/")[0]
        self.locations.ensure_ours(self.id, account, again=again)

    def _look(self) -> None:
        """What is on its way out does not come back. A creation that was killed early has no
        storage account: nothing would ever answer."""
        if self.locations.look(self.id)["properties"]["provisioningState"] == "Deleting":
            raise NotFound(f"Task {self.id} is being deleted")
        if not self.location.contained:
            self.ensure_ours(again=True)


class AzureResource(TaskResource[AzureContext]):
    """What resources of Azure have in common beside that. All are in the task's resource group,
    and go with it: what has nothing else to take with it need not be deleted for itself."""

    type = ""

    @property
    def path(self) -> str:
        """Its id."""
        return self._context.path(self.type)

    def find(self) -> bool:
        self._call("GET", self.path)
        return True

    def delete(self, ctx: Context) -> None:
        """It goes with the group."""

    def _call(self, method: str, path: str, body: Any = None, *, query: Query = None) -> Any:
        return self._context.account.call(self.title, method, path, body, query=query)

    def _follow(
        self, ctx: Context, method: str, path: str, body: Any = None, *, query: Query = None
    ) -> Any:
        account = self._context.account
        return account.follow(ctx, self.title, method, path, body, query=query)

    def _placed(self, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The content of a resource with these properties."""
        location, marks = self._context.location.region, self._context.tags
        return {"location": location, "tags": marks, "properties": properties, **more}
