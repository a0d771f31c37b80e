"""Microsoft.Network: virtual networks, their subnets, and network security groups."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Mapping
from typing import Any

from tests.simcloud.az import names
from tests.simcloud.az.network_rules import check_network, check_rules
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    etag,
    existing_group,
    place,
    references,
)
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

NETWORK = "Microsoft.Network/virtualNetworks"
SUBNET = "Microsoft.Network/virtualNetworks/subnets"
MEMBERS = "Microsoft.Network/applicationSecurityGroups"
SECURITY = "Microsoft.Network/networkSecurityGroups"
_REFERRED = (
    "subnet",
    "networkSecurityGroup",
    "applicationSecurityGroups",
    "sourceApplicationSecurityGroups",
    "destinationApplicationSecurityGroups",
)
_RULE = "Microsoft.Network/networkSecurityGroups/securityRules"


class Network:
    """Answers for Microsoft.Network."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Handlers:
        return {
            "virtualNetworks.createOrUpdate": self._put_network,
            "virtualNetworks.get": self._get,
            "virtualNetworks.delete": self._delete,
            "virtualNetworks.list": lambda c: self._list(c, NETWORK),
            "virtualNetworks.listAll": lambda c: self._list(c, NETWORK),
            "subnets.createOrUpdate": self._put_subnet,
            "subnets.get": self._get,
            "subnets.delete": self._delete,
            "subnets.list": lambda c: self._list(c, SUBNET),
            "applicationSecurityGroups.createOrUpdate": self._put_members,
            "applicationSecurityGroups.get": self._get,
            "applicationSecurityGroups.delete": self._delete,
            "networkSecurityGroups.createOrUpdate": self._put_security,
            "networkSecurityGroups.get": self._get,
            "networkSecurityGroups.delete": self._delete,
            "networkSecurityGroups.list": lambda c: self._list(c, SECURITY),
        }

    def _put_network(self, context: Context) -> Answer:
        body = context.body
        made = self._begin(context, NETWORK, context["virtualNetworkName"])
        properties = body.get("properties") or {}
        check_network(properties)
        subnets = [self._subnet(made, each) for each in properties.get("subnets") or []]
        for each in self._parts.resources.of_type(SUBNET, made.id):
            if each.id.lower() not in {one.id.lower() for one in subnets}:
                self._check_unused(each)
                self._parts.resources.remove(each)
        made.content["properties"] = {
            "provisioningState": "Updating",
            "resourceGuid": str(uuid.uuid4()),
            "addressSpace": properties["addressSpace"],
            "subnets": [each.content for each in subnets],
            "enableDdosProtection": False,
        }
        return self._change(context, made, subnets)

    def _put_subnet(self, context: Context) -> Answer:
        network = self._parts.resources.get(context.id.rpartition("/subnets/")[0])
        self._check_idle(network)
        existing_group(self._parts, context)
        subnet = self._subnet(network, {**context.body, "name": context["subnetName"]})
        known = [e for e in network.properties["subnets"] if e["id"].lower() != subnet.id.lower()]
        check_network({**network.properties, "subnets": [*known, subnet.content]})
        network.properties["subnets"] = [*known, subnet.content]
        return self._change(context, subnet, [])

    def _subnet(self, network: Resource, given: Mapping[str, Any]) -> Resource:
        name = given.get("name") or ""
        names.check_name(SUBNET, name)
        own_id = f"{network.id}/subnets/{name}"
        check_references(self._parts, own_id, network.location, given)
        content = {
            "id": own_id,
            "name": name,
            "type": SUBNET,
            "etag": etag(),
            "properties": {
                "privateEndpointNetworkPolicies": "Disabled",
                "privateLinkServiceNetworkPolicies": "Enabled",
                **(given.get("properties") or {}),
                "provisioningState": "Updating",
            },
        }
        return self._parts.resources.add(Resource(own_id, content))

    def _put_members(self, context: Context) -> Answer:
        made = self._begin(context, MEMBERS, context["applicationSecurityGroupName"])
        made.content["properties"] = {
            "provisioningState": "Updating",
            "resourceGuid": str(uuid.uuid4()),
        }
        return self._change(context, made, [])

    def _put_security(self, context: Context) -> Answer:
        made = self._begin(context, SECURITY, context["networkSecurityGroupName"])
        rules = (context.body.get("properties") or {}).get("securityRules") or []
        check_rules(rules)
        check_references(self._parts, made.id, made.location, {"rules": rules})
        made.content["properties"] = {
            "provisioningState": "Updating",
            "resourceGuid": str(uuid.uuid4()),
            "securityRules": [
                {
                    **each,
                    "id": f"{made.id}/securityRules/{each['name']}",
                    "type": _RULE,
                    "etag": etag(),
                    "properties": {**each["properties"], "provisioningState": "Succeeded"},
                }
                for each in rules
            ],
            "defaultSecurityRules": [],
        }
        return self._change(context, made, [])

    def _begin(self, context: Context, type: str, name: str) -> Resource:
        """The resource that is made or changed, after what is checked for all kinds."""
        existing_group(self._parts, context)
        body = context.body
        names.check_name(type, name)
        if not body.get("location"):
            text = "The required property 'location' is missing."
            raise ArmError(400, "LocationRequired", text)
        names.check_location(type, body["location"])
        names.check_tags(body.get("tags"))
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        if former:
            self._check_idle(former)
            former.content["tags"] = body.get("tags") or {}
            return former
        own_id = canonical(context.id)
        content = {
            "id": own_id,
            "name": name,
            "type": type,
            "etag": etag(),
            "location": place(body["location"]),
            "tags": body.get("tags") or {},
            "properties": {},
        }
        return Resource(own_id, content)

    def _change(self, context: Context, made: Resource, inside: list[Resource]) -> Answer:
        """Have it be done after a while."""
        parts = self._parts
        is_new = parts.resources.find(made.id) is None
        parts.resources.add(made)

        def finish() -> dict[str, Any]:
            for each in (made, *inside):
                each.properties["provisioningState"] = "Succeeded"
            return made.content

        location = parts.resources.get(canonical(context.id).partition("/subnets/")[0]).location
        operation = parts.operations.begin(
            "Microsoft.Network", location, context.version, parts.timing.network, finish
        )
        made.going_on = operation.id
        headers = parts.operations.headers(operation, "status")
        return reply(201 if is_new else 200, made.content, headers)

    def _get(self, context: Context) -> Answer:
        return reply(200, self._parts.resources.get(context.id).content)

    def _delete(self, context: Context) -> Answer:
        parts, found = self._parts, self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        existing_group(parts, context)
        self._check_idle(found)
        for each in (found, *parts.resources.below(found.id)):
            self._check_unused(each)

        def finish() -> None:
            parts.resources.remove(found)
            parts.roles.forget_below(found.id)
            network = parts.resources.find(found.id.rpartition("/subnets/")[0])
            if network:
                known = network.properties["subnets"]
                network.properties["subnets"] = [e for e in known if e["id"] != found.id]

        found.properties["provisioningState"] = "Deleting"
        location = found.content.get("location", "eastus")
        operation = parts.operations.begin(
            "Microsoft.Network", location, context.version, parts.timing.network, finish
        )
        found.going_on = operation.id
        return reply(202, None, parts.operations.headers(operation, "status", "result"))

    def _list(self, context: Context, type: str) -> Answer:
        below = ""
        if type == SUBNET:
            below = self._parts.resources.get(context.id.rpartition("/subnets")[0]).id
        elif "resourceGroupName" in context.call.parameters:
            below = existing_group(self._parts, context).id
        found = self._parts.resources.of_type(type, below)
        return reply(200, {"value": [each.content for each in found]})

    def _check_idle(self, resource: Resource) -> None:
        if self._parts.operations.is_going_on(resource.going_on):
            raise ArmError(
                409,
                "AnotherOperationInProgress",
                f"Another operation on this or dependent resource is in progress. To retrieve "
                f"status of the operation use uri: https://management.azure.com"
                f"{self._parts.scope}/providers/Microsoft.Network/locations/"
                f"{resource.content.get('location', '')}/operations/{resource.going_on}.",
            )

    def _check_unused(self, resource: Resource) -> None:
        for each in self._parts.resources:
            if each.id.lower().startswith(resource.id.lower().partition("/subnets/")[0]):
                continue
            ids = [own_id.lower() for _, own_id in references(each.content)]
            if resource.id.lower() in ids:
                kind = "Subnet" if resource.type == SUBNET else "NetworkSecurityGroup"
                raise ArmError(
                    400,
                    f"InUse{kind}CannotBeDeleted",
                    f"{kind} {resource.name} is in use by {each.id} and cannot be deleted. In "
                    f"order to delete it, delete all the resources within it.",
                )


def check_references(parts: Parts, own_id: str, location: str, given: Mapping[str, Any]) -> None:
    """What a resource uses of the network has to be there, here, and finished."""
    for key, other in references(given):
        if key not in _REFERRED:
            continue
        found = parts.resources.find(other)
        at = parts.resources.find(other.partition("/subnets/")[0])
        if found is None or at is None or at.location != location:
            raise ArmError(
                400,
                "InvalidResourceReference",
                f"Resource {other} referenced by resource {own_id} was not found. Please make sure "
                f"that the referenced resource exists, and that both resources are in the same "
                f"region.",
            )
        state = found.properties["provisioningState"]
        if state != "Succeeded":
            raise ArmError(
                409,
                "ReferencedResourceNotProvisioned",
                f"Cannot proceed with operation because resource {other} used by resource {own_id} "
                f"is not in Succeeded state. Resource is in {state} state.",
            )


def address(network: str, number: int) -> str:
    """An address of a subnet; Azure keeps the first four for itself."""
    return str(ipaddress.ip_network(network)[4 + number % 200])
