"""What has to fit together in networks and security groups, and no package of Azure knows."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from tests.simcloud.az.wire import ArmError

_NEEDED = (
    ("sourceAddressPrefix", "sourceAddressPrefixes", "sourceApplicationSecurityGroups"),
    (
        "destinationAddressPrefix",
        "destinationAddressPrefixes",
        "destinationApplicationSecurityGroups",
    ),
    ("sourcePortRange", "sourcePortRanges", ""),
    ("destinationPortRange", "destinationPortRanges", ""),
)
_SERVICES = ("*", "Internet", "VirtualNetwork", "AzureLoadBalancer", "Storage", "AzureCloud")


def check_network(properties: Mapping[str, Any]) -> None:
    """Subnets are in the space of their network, and do not overlap."""
    space = (properties.get("addressSpace") or {}).get("addressPrefixes") or []
    if not space:
        text = "The virtual network has no address space."
        raise ArmError(400, "InvalidRequestFormat", text)
    whole = [_network(each) for each in space]
    subnets = []
    for each in properties.get("subnets") or []:
        given = each.get("properties") or {}
        prefix = given.get("addressPrefix") or next(iter(given.get("addressPrefixes") or []), None)
        if not prefix:
            text = f"Subnet '{each.get('name')}' has no address prefix."
            raise ArmError(400, "InvalidRequestFormat", text)
        subnet = _network(prefix)
        if not any(_inside(subnet, one) for one in whole):
            text = f"Subnet '{each.get('name')}' is not valid in virtual network."
            raise ArmError(400, "NetcfgInvalidSubnet", text)
        subnets.append((each.get("name"), subnet))
    for (one, first), (other, second) in combinations(subnets, 2):
        if first.overlaps(second):
            text = (
                f"Subnet '{one}' is not valid because its IP address range overlaps with '{other}'."
            )
            raise ArmError(400, "NetcfgSubnetRangesOverlap", text)


def check_rules(rules: list[Mapping[str, Any]]) -> None:
    """Rules of a security group."""
    taken: set[tuple[str, int]] = set()
    for rule in rules:
        name, given = rule.get("name"), rule.get("properties")
        if not name or not given:
            raise ArmError(400, "InvalidRequestFormat", "A security rule has no name or content.")
        for problem in _problems(given):
            text = f"Security rule has invalid value: {problem} Rule: {name}."
            raise ArmError(400, "SecurityRuleInvalidParameter", text)
        place = (given["direction"], given["priority"])
        if place in taken:
            raise ArmError(
                400,
                "SecurityRuleConflict",
                f"Security rule {name} conflicts with another rule. Rules cannot have the same "
                f"Priority and Direction.",
            )
        taken.add(place)


def _problems(given: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(given.get("priority"), int) or not 100 <= given["priority"] <= 4096:
        yield "The priority has to be between 100 and 4096."
    for one, many, members in _NEEDED:
        values = [given[one]] if given.get(one) else given.get(many) or []
        if given.get(members):
            if values:
                yield f"{one} and {members} exclude each other."
            continue
        if not values:
            yield f"{one} or {many} is required."
        for value in values:
            right = _is_port(value) if "Port" in one else _is_address(value)
            if not right:
                yield f"'{value}' of {one}."
        if given.get(one) and given.get(many):
            yield f"{one} and {many} exclude each other."


def _is_port(text: str) -> bool:
    if text == "*":
        return True
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    return found is not None and all(int(each) <= 65535 for each in found.groups() if each)


def _is_address(text: str) -> bool:
    if text in _SERVICES:
        return True
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        text = f"The address prefix {text} is invalid: {error}."
        raise ArmError(400, "InvalidAddressPrefixFormat", text) from error


def _inside(inner: Any, outer: Any) -> bool:
    return inner.version == outer.version and bool(inner.subnet_of(outer))
