"""Who gets through to an instance by TCP: the security groups of its card and its subnet tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import Parts
from tests.simcloud.common.ranges import covers, has_port

_OUTSIDE = ("*", "Internet")
_OTHERS = ("VirtualNetwork", "AzureLoadBalancer", "Storage", "AzureCloud")


def admits(parts: Parts, instance: Instance, port: int, source: str) -> bool:
    """All groups on the way have to allow it. Without any, Azure lets nobody in from outside."""
    groups = list(_groups(parts, instance))
    return bool(groups) and all(_allows(group, port, source) for group in groups)


def _groups(parts: Parts, instance: Instance) -> Iterator[Mapping[str, Any]]:
    card = instance.profile["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]
    subnet = card["ipConfigurations"][0]["properties"]["subnet"]["id"]
    for holder in (parts.resources.get(subnet).properties, card):
        if group := holder.get("networkSecurityGroup"):
            yield parts.resources.get(group["id"]).properties


def _allows(group: Mapping[str, Any], port: int, source: str) -> bool:
    """The first rule that is about it decides; the last of Azure's own denies everything."""
    rules = [each["properties"] for each in group["securityRules"]]
    about = [each for each in rules if _is_about(each, port, source)]
    first = min(about, key=lambda rule: int(rule["priority"]), default=None)
    return first is not None and first["access"] == "Allow"


def _is_about(rule: Mapping[str, Any], port: int, source: str) -> bool:
    inwards = rule["direction"] == "Inbound" and rule["protocol"] in ("*", "Tcp")
    ports = _values(rule, "destinationPortRange")
    networks = [each for each in _values(rule, "sourceAddressPrefix") if each not in _OTHERS]
    from_outside = any(each in _OUTSIDE for each in networks)
    return (
        inwards
        and ("*" in ports or has_port(ports, port))
        and (from_outside or covers(networks, source))
    )


def _values(rule: Mapping[str, Any], name: str) -> list[str]:
    """A rule has one value, or a list of them by another name."""
    many = f"{name}es" if name.endswith("x") else f"{name}s"
    return [rule[name]] if rule.get(name) else list(rule[many])
