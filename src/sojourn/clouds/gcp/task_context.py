"""A task in its project, and what all its resources have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp import store_address, tags
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.locations import Location, Locations
from sojourn.clouds.gcp.machines import Offer
from sojourn.clouds.gcp.user_data import ON_MACHINE
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.task_context import TaskContext

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.storage.store import StoreAddress

__all__ = ["GoogleContext", "GoogleResource"]


@dataclass(frozen=True)
class GoogleContext(TaskContext[Account, Location, Offer]):
    """A task in its project."""

    ON_MACHINE = ON_MACHINE

    locations: Locations

    @property
    def labels(self) -> dict[str, str]:
        return tags.labels_of(self.id, self.require_task())

    @property
    def group(self) -> str:
        """The path of the group, below the project."""
        return f"zones/{self.location.zone}/instanceGroupManagers/{self.name}"

    def ensure_ours(self) -> None:
        self.locations.ensure_ours(self.location.bucket)

    def _address(self, folder: str) -> StoreAddress:
        return store_address.address(self.account, replace(self.location, folder=folder))


class GoogleResource(TaskResource[GoogleContext]):
    """What resources of Compute Engine have in common beside that."""

    def _call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return self._context.account.compute(self.title, method, path, body, **query)

    def _change(self, ctx: Context, method: str, path: str, body: Any = None, **query: Any) -> None:
        """Until it is done."""
        self._context.account.change(ctx, self.title, method, path, body, **query)
