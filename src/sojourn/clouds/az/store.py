"""The store of a task: a storage account of its own, or a folder in a container of the user's.

Either way the resource group of the task comes first and goes last: it is what tells of the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.az import tags
from sojourn.clouds.az.errors import code_of
from sojourn.clouds.az.task_context import AzureContext, AzureResource
from sojourn.clouds.vm.paths import OWNER
from sojourn.clouds.vm.store import Folder, StoreOf
from sojourn.clouds.vm.waiting import patiently
from sojourn.core.errors import AuthError, Conflict, NotFound, Transient

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Resource

__all__ = ["ResourceGroup", "store_of"]

_GONE_WITHIN = 3600.0  # seconds
_DELETED_AT_ONCE = 500
_DATA = (
    "Assign yourself the role Storage Blob Data Contributor for the subscription: to be its owner "
    "is not enough. See docs/azure.md for the full role."
)


class ResourceGroup(AzureResource):
    """Holds all else, and is found by its name and its tags."""

    stage = 0
    kind = "resource group"

    @property
    def path(self) -> str:
        return self._context.group

    def find(self) -> bool:
        return self._is_ours(self._call("GET", self.path))

    def _is_ours(self, group: dict[str, dict[str, str]]) -> bool:
        return (group.get("tags") or {}).get(tags.ID) == self._name

    def create(self, ctx: Context) -> None:
        self.make(ctx)

    def make(self, ctx: Context) -> bool:
        """Whether there was none. One that is on its way out is waited for; one that is not ours
        is left alone."""
        patience = ctx.within(_GONE_WITHIN)
        while True:
            try:
                group = self._call("GET", self.path)
            except NotFound:
                group = None
            if group is None:
                body = {"location": self._context.location.region, "tags": self._context.tags}
                try:
                    self._call("PUT", self.path, body)
                    return True
                except Transient as error:
                    if code_of(error) != "ResourceGroupBeingDeleted":
                        raise
            elif group["properties"]["provisioningState"] != "Deleting":
                self._check_same(group)
                return False
            patience.sleep(1)

    def _check_same(self, group: dict[str, dict[str, str]]) -> None:
        if not self._is_ours(group):
            raise Conflict(
                f"Resource group {self._name} already exists and is not Sojourn's",
                hint="Choose another name, or delete the resource group.",
            )
        context = self._context
        there = context.locations.told_by(context.id, group)
        if there != context.location:
            raise Conflict(
                f"A different task with this name already exists in {there.region}, in container "
                f"{there.container} of storage account {there.account}",
                hint=f"Choose another name, or run `sojourn delete {self._name}`.",
            )

    def delete(self, ctx: Context) -> None:
        """With all that is in it."""
        try:
            if self.find():
                self._follow(ctx.within(_GONE_WITHIN), "DELETE", self.path)
        except NotFound:
            pass
        self._context.locations.forget(self._context.id)


class OwnAccount(AzureResource):
    """A storage account of the task's own, with one container."""

    stage = 0
    kind = "storage account"
    type = "Microsoft.Storage/storageAccounts"

    def __init__(self, context: AzureContext) -> None:
        super().__init__(context)
        self._group = ResourceGroup(context)

    @property
    def title(self) -> str:
        return f"{self.kind} of {self._name}"

    def read(self, ctx: Context) -> bool:
        return self._group.read(ctx)

    def create(self, ctx: Context) -> None:
        made = self._group.make(ctx)
        try:
            self._make(ctx)
        except Conflict:  # somebody has the name: then nobody looks for what we made
            if made:
                self._group.delete(ctx)
            raise
        self._until_open(ctx)

    def _make(self, ctx: Context) -> None:
        container = self._context.container
        account = container.partition("/blobServices/")[0]
        properties = {
            "allowBlobPublicAccess": False,
            "allowSharedKeyAccess": False,
            "minimumTlsVersion": "TLS1_2",
            "supportsHttpsTrafficOnly": True,
        }
        body = self._placed(properties, sku={"name": "Standard_LRS"}, kind="StorageV2")

        def make() -> None:
            self._follow(ctx, "PUT", account, body)
            self._call("PUT", container, {})

        # Somebody else may make it at the same time.
        patiently(ctx, make, lambda e: code_of(e) == "StorageAccountOperationInProgress")

    def _until_open(self, ctx: Context) -> None:
        """Wait until its name is known."""
        try:
            store = self._context.store
            patiently(ctx, lambda: store().head(OWNER), lambda e: isinstance(e, Transient), every=2)
        except AuthError as error:
            raise AuthError(error.message, hint=_DATA) from error

    def delete(self, ctx: Context) -> None:
        self._group.delete(ctx)


class ContainerFolder(Folder[AzureContext]):
    """The resource group tells those who look where it is."""

    _prefix = ""  # its store has no versions, and lists what is in the folder alone

    def _sign(self, ctx: Context) -> None:
        ResourceGroup(self._context).make(ctx)

    def _is_signed(self) -> bool:
        return ResourceGroup(self._context).find()

    def _unsign(self, ctx: Context) -> None:
        ResourceGroup(self._context).delete(ctx)

    def _top(self) -> set[str]:
        found = {item.path.partition("/") for item in self._context.store().list("")}
        return {f"{name}{slash}" for name, slash, _ in found}

    def _empty(self, ctx: Context, path: str) -> None:
        store = self._context.store()
        found = [path]
        if path.endswith("/"):
            found = [item.path for item in store.list(path.rstrip("/"))]
        for start in range(0, len(found), _DELETED_AT_ONCE):
            ctx.check()
            store.delete(found[start : start + _DELETED_AT_ONCE])


def store_of(context: AzureContext) -> Resource:
    """Whichever of the two a task has."""
    return StoreOf(context, OwnAccount, ContainerFolder)
