"""Who gets through to an instance: the security groups of its card and its subnet tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import Parts
from tests.simcloud.common.ranges import covers, has_port

_OUTSIDE = ("*", "Internet")
_INSIDE = ("*", "VirtualNetwork")
_WORDS = ("*", "Internet", "VirtualNetwork", "AzureLoadBalancer", "Storage", "AzureCloud")
_Rule = Mapping[str, Any]


def admits(parts: Parts, instance: Instance, port: int, source: str) -> bool:
    """By TCP, from an address outside. Without any group, Azure lets nobody in."""

    def is_from(rule: _Rule) -> bool:
        return _covers(rule, source, _OUTSIDE)

    groups = list(_groups(parts, instance))
    return bool(groups) and all(
        _allows(group, instance, "Tcp", port, is_from, default=False) for group in groups
    )


def connects(parts: Parts, source: Instance, target: Instance, protocol: str, port: int) -> bool:
    """From one instance to another in the same network, where all may, unless a rule says no."""

    def is_from(rule: _Rule) -> bool:
        if given := _ids(rule.get("sourceApplicationSecurityGroups")):
            return not given.isdisjoint(_application_groups(source))
        return _covers(rule, source.place[1], _INSIDE)

    return all(
        _allows(group, target, protocol.capitalize(), port, is_from, default=True)
        for group in _groups(parts, target)
    )


def _card(instance: Instance) -> Mapping[str, Any]:
    cards = instance.profile["networkProfile"]["networkInterfaceConfigurations"]
    found: Mapping[str, Any] = cards[0]["properties"]
    return found


def _groups(parts: Parts, instance: Instance) -> Iterator[Mapping[str, Any]]:
    """All have to allow it."""
    card = _card(instance)
    subnet = card["ipConfigurations"][0]["properties"]["subnet"]["id"]
    for holder in (parts.resources.get(subnet).properties, card):
        if group := holder.get("networkSecurityGroup"):
            yield parts.resources.get(group["id"]).properties


def _application_groups(instance: Instance) -> set[str]:
    first = _card(instance)["ipConfigurations"][0]["properties"]
    return _ids(first.get("applicationSecurityGroups"))


def _ids(given: list[Mapping[str, Any]] | None) -> set[str]:
    return {str(each["id"]).lower() for each in given or []}


def _allows(
    group: Mapping[str, Any],
    target: Instance,
    protocol: str,
    port: int,
    is_from: Callable[[_Rule], bool],
    *,
    default: bool,
) -> bool:
    """The first rule that is about it decides; `default` is what Azure's own rules say."""
    rules = [each["properties"] for each in group["securityRules"]]
    about = [each for each in rules if _is_about(each, target, protocol, port) and is_from(each)]
    first = min(about, key=lambda rule: int(rule["priority"]), default=None)
    return default if first is None else first["access"] == "Allow"


def _is_about(rule: _Rule, target: Instance, protocol: str, port: int) -> bool:
    ports = _values(rule, "destinationPortRange")
    wanted = _ids(rule.get("destinationApplicationSecurityGroups"))
    return (
        rule["direction"] == "Inbound"
        and rule["protocol"] in ("*", protocol)
        and ("*" in ports or has_port(ports, port))
        and (not wanted or not wanted.isdisjoint(_application_groups(target)))
    )


def _covers(rule: _Rule, source: str, words: tuple[str, ...]) -> bool:
    given = _values(rule, "sourceAddressPrefix")
    networks = [each for each in given if each not in _WORDS]
    return any(each in words for each in given) or covers(networks, source)


def _values(rule: _Rule, name: str) -> list[str]:
    """A rule has one value, or a list of them by another name."""
    many = f"{name}es" if name.endswith("x") else f"{name}s"
    return [rule[name]] if rule.get(name) else list(rule.get(many) or [])
