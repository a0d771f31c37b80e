"""Which actions a call needs, at which scopes. Whether a caller has them is told by `roles`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.simcloud.az.calls import Call
from tests.simcloud.az.entra import Principal
from tests.simcloud.az.parts import references
from tests.simcloud.az.roles import Roles
from tests.simcloud.az.wire import ArmError

_GROUPS = "Microsoft.Resources/subscriptions/resourceGroups"
_VERBS = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
# Where the path does not say it
_ACTIONS = {
    "resourceGroups.list": f"{_GROUPS}/read",
    "resourceGroups.get": f"{_GROUPS}/read",
    "resourceGroups.checkExistence": f"{_GROUPS}/read",
    "resourceGroups.createOrUpdate": f"{_GROUPS}/write",
    "resourceGroups.update": f"{_GROUPS}/write",
    "resourceGroups.delete": f"{_GROUPS}/delete",
    "resources.list": "Microsoft.Resources/subscriptions/resources/read",
    "resources.listByResourceGroup": f"{_GROUPS}/resources/read",
    "providers.get": "Microsoft.Resources/subscriptions/providers/read",
    "providers.list": "Microsoft.Resources/subscriptions/providers/read",
    "subscriptions.get": "Microsoft.Resources/subscriptions/read",
    "subscriptions.listLocations": "Microsoft.Resources/subscriptions/locations/read",
    "storageAccounts.checkNameAvailability": "Microsoft.Storage/checknameavailability/read",
    "activityLogs.list": "Microsoft.Insights/eventtypes/values/read",
    "virtualMachineImages.listPublishers": "Microsoft.Compute/locations/publishers/read",
}
_OPEN = ("operations.",)  # who began an operation may follow it; the address is the secret
# Lists over the whole subscription show what the caller may read, and are never refused
_FILTERED = ("resourceGroups.list", "resources.list")


@dataclass(frozen=True)
class Need:
    """An action at a scope."""

    action: str
    scope: str
    linked: bool = False  # to use what another resource is


def needed(call: Call, body: Mapping[str, Any]) -> Iterator[Need]:
    """All that the caller has to be allowed."""
    if call.name.startswith(_OPEN) or call.name in _FILTERED:
        return
    if call.name == "providers.register":
        namespace = call.parameters["resourceProviderNamespace"]
        yield Need(f"{namespace}/register/action", "/".join(call.path.split("/")[:3]))
        return
    yield Need(_ACTIONS.get(call.name) or _from_path(call), _scope(call))
    if call.method in ("PUT", "PATCH"):
        yield from _linked(call.name.partition(".")[0], body)


def check(call: Call, body: Mapping[str, Any], caller: Principal, roles: Roles) -> None:
    """Refuse a call that its caller may not make."""
    main = ""
    for need in needed(call, body):
        if not roles.may(caller.object_id, need.action, need.scope):
            raise (
                _linked_refusal(caller, main, call, need) if need.linked else _refusal(caller, need)
            )
        main = main or need.action


def _from_path(call: Call) -> str:
    """The kinds of resources in the path, without their names."""
    kinds = call.operation["path"].rpartition("/providers/")[2].split("/")
    known = [each for each in kinds if not each.startswith("{") and each not in ("default",)]
    known = [each for each in known if each.lower() not in ("vmimage", "current")]
    action = "/".join(known)
    if call.method == "POST":
        return f"{action}/action"
    return f"{action}/{_VERBS[call.method]}"


def _scope(call: Call) -> str:
    """What the right has to be had on: a resource; of a list, what it is a list of."""
    path = call.path.rstrip("/")
    template = call.operation["path"]
    if "/{scope}/" in template:
        return "/" + call.parameters["scope"].strip("/")
    if call.method == "POST":
        return path.rpartition("/")[0]
    while not template.endswith("}"):  # a list, or a view of something
        template, path = template.rpartition("/")[0], path.rpartition("/")[0]
    if template.endswith("/providers/{resourceProviderNamespace}"):
        return "/".join(path.split("/")[:3])
    return re.sub("/providers/[^/]+$", "", path)


def _linked(kind: str, body: Mapping[str, Any]) -> Iterator[Need]:
    network = "Microsoft.Network"
    if kind in ("virtualMachineScaleSets", "virtualNetworks", "subnets"):
        for key, other in references(body):
            if key == "subnet":
                yield Need(f"{network}/virtualNetworks/subnets/join/action", other, linked=True)
            elif key == "networkSecurityGroup":
                yield Need(f"{network}/networkSecurityGroups/join/action", other, linked=True)
            elif key == "applicationSecurityGroups":
                action = f"{network}/applicationSecurityGroups/joinIpConfiguration/action"
                yield Need(action, other, linked=True)
            elif key == "proximityPlacementGroup":
                action = "Microsoft.Compute/proximityPlacementGroups/write"
                yield Need(action, other, linked=True)
    if kind == "networkSecurityGroups":
        action = f"{network}/applicationSecurityGroups/joinNetworkSecurityRule/action"
        for key in ("sourceApplicationSecurityGroups", "destinationApplicationSecurityGroups"):
            yield from _of_sources(body, key, action)
    if kind == "virtualMachineScaleSets":
        yield from _of_sources(body, "imageReference", "Microsoft.Compute/images/read")
    if kind == "images":
        yield from _of_sources(body, "snapshot", "Microsoft.Compute/snapshots/read")
    if kind == "snapshots":
        source = ((body.get("properties") or {}).get("creationData") or {}).get("sourceResourceId")
        if source:
            yield Need("Microsoft.Compute/disks/beginGetAccess/action", source, linked=True)
    identities = (body.get("identity") or {}).get("userAssignedIdentities") or {}
    for other in identities:
        action = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
        yield Need(action, other, linked=True)


def _of_sources(body: Mapping[str, Any], wanted: str, action: str) -> Iterator[Need]:
    for key, other in references(body):
        if key == wanted:
            yield Need(action, other, linked=True)


def _refusal(caller: Principal, need: Need) -> ArmError:
    return ArmError(
        403,
        "AuthorizationFailed",
        f"The client '{caller.client_id}' with object id '{caller.object_id}' does not have "
        f"authorization to perform action '{need.action}' over scope '{need.scope}' or the scope "
        f"is invalid. If access was recently granted, please refresh your credentials.",
    )


def _linked_refusal(caller: Principal, action: str, call: Call, need: Need) -> ArmError:
    return ArmError(
        403,
        "LinkedAuthorizationFailed",
        f"The client '{caller.client_id}' with object id '{caller.object_id}' has permission to "
        f"perform action '{action}' on scope '{call.scope}'; however, it does not have permission "
        f"to perform action(s) '{need.action}' on the linked scope(s) '{need.scope}' "
        f"(respectively) or the linked scope(s) are invalid.",
    )
