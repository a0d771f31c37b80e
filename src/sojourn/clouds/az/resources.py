"""What is made in Azure for a task beside its store and its scale set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import policy
from sojourn.clouds.az.errors import code_of
from sojourn.clouds.az.networks import chosen_subnet
from sojourn.clouds.az.placement import MEMBERS, has_members, rules
from sojourn.clouds.az.task_context import AzureResource
from sojourn.clouds.vm import keys
from sojourn.clouds.vm.options import ANYWHERE, ssh_from
from sojourn.clouds.vm.waiting import PATIENCE, pause
from sojourn.core.errors import InvalidInput, NotFound, SojournError
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.policy import Grant
    from sojourn.core.context import Context

__all__ = ["Identity", "Key", "Network", "assign"]

_SSH = 22


class Identity(AzureResource):
    """What machines are, and may do with their store."""

    kind = "identity"
    type = "Microsoft.ManagedIdentity/userAssignedIdentities"

    def create(self, ctx: Context) -> None:
        location, marks = self._context.location, self._context.tags
        body = {"location": location.region, "tags": marks}
        made = self._call("PUT", self.path, body)
        principal = str(made["properties"]["principalId"])
        grants = policy.on_store(self._context.container, location)
        assign(ctx, self._context.account, self._name, principal, grants)

    def delete(self, ctx: Context) -> None:
        """It goes with the group; but in a container of the user's, its rights would stay."""
        try:
            location = self._context.location
            if not location.contained:
                return
            grants = policy.on_store(self._context.container, location)
        except (NotFound, InvalidInput):
            return  # it is nowhere, or the user's storage account is not there any more
        for grant in grants:
            self._call("DELETE", _assignment(grant, self._name))


def assign(
    ctx: Context, account: Account, task: str, principal: str, grants: tuple[Grant, ...]
) -> None:
    """Give rights to the identity of a task."""
    together([partial(_assign, ctx, account, task, principal, grant) for grant in grants])


def _assign(ctx: Context, account: Account, task: str, principal: str, grant: Grant) -> None:
    roles = f"{account.scope}/providers/Microsoft.Authorization/roleDefinitions"
    properties = {
        "roleDefinitionId": f"{roles}/{grant.role}",
        "principalId": principal,
        "principalType": "ServicePrincipal",  # else Azure would have to know it everywhere first
        "description": f"Machines of task {task}",
    }
    if grant.condition:
        properties |= {"condition": grant.condition, "conditionVersion": "2.0"}
    path = _assignment(grant, task)
    patience = ctx.within(PATIENCE)
    while True:
        try:
            account.call(f"role assignment of {task}", "PUT", path, {"properties": properties})
            return
        except SojournError as error:
            if code_of(error) == "RoleAssignmentUpdateNotPermitted":  # of an identity that is gone
                account.call(f"role assignment of {task}", "DELETE", path)
            elif code_of(error) != "PrincipalNotFound":
                raise
            pause(patience, 1, error)


def _assignment(grant: Grant, task: str) -> str:
    base = f"{grant.scope}/providers/Microsoft.Authorization/roleAssignments"
    return f"{base}/{grant.name(task)}"


class Network(AzureResource):
    """Where machines are: SSH comes in, everything goes out, and ranks of a gang are connected."""

    kind = "network"
    type = "Microsoft.Network/virtualNetworks"

    @property
    def subnet(self) -> str:
        """The id of the subnet of machines."""
        return chosen_subnet(self._context.require_task()) or f"{self.path}/subnets/machines"

    @property
    def firewall(self) -> str:
        """The id of what lets SSH in."""
        return self._context.path("Microsoft.Network/networkSecurityGroups")

    @property
    def members(self) -> str:
        """The id of the group by which rules know the machines of a gang."""
        return self._context.path(MEMBERS)

    def create(self, ctx: Context) -> None:
        wanted = self._context.require_task()
        doors = [_ssh(networks)] if (networks := ssh_from(wanted)) else []
        if has_members(wanted):
            self._follow(ctx, "PUT", self.members, self._placed({}))
            doors += rules(self.members)
        self._follow(ctx, "PUT", self.firewall, self._placed({"securityRules": doors}))
        if chosen_subnet(wanted):
            return
        inside = {"addressPrefix": "10.0.0.0/16"}
        properties = {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "machines", "properties": inside}],
        }
        self._follow(ctx, "PUT", self.path, self._placed(properties))


def _ssh(networks: tuple[str, ...]) -> dict[str, Any]:
    anywhere = networks == ANYWHERE
    properties = {
        "priority": 100,
        "direction": "Inbound",
        "access": "Allow",
        "protocol": "Tcp",
        **({"sourceAddressPrefix": "*"} if anywhere else {"sourceAddressPrefixes": [*networks]}),
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": str(_SSH),
    }
    return {"name": "ssh", "properties": properties}


class Key(AzureResource):
    """Opens the machines to whoever can read the store's seed; it is kept there alone."""

    kind = "key of"

    def find(self) -> bool:
        return False  # never the last thing that is left

    def create(self, ctx: Context) -> None:
        keys.make_key_pair(self._context.store(), self._context.id)
