"""Who gets through to an instance: the firewall rules of its network tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.common.ranges import covers, has_port
from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.store import Store, path_of

_NAMES = {"tcp": ("tcp", "6", "all"), "udp": ("udp", "17", "all")}


def admits(store: Store, instance: Instance, port: int, source: str) -> bool:
    """By TCP, from an address outside: sources that are tags or accounts are machines."""
    return _passes(store, instance, "tcp", port, lambda rule: _covers(rule, source))


def connects(store: Store, source: Instance, target: Instance, protocol: str, port: int) -> bool:
    """From one instance to another, by its address in the network that both are in."""

    def is_from(rule: Mapping[str, Any]) -> bool:
        tagged = not set(rule.get("sourceTags", ())).isdisjoint(_tags(source))
        known = source.email in rule.get("sourceServiceAccounts", ())
        return _covers(rule, source.place[1]) or tagged or known

    return _passes(store, target, protocol, port, is_from)


def _passes(
    store: Store,
    instance: Instance,
    protocol: str,
    port: int,
    is_from: Callable[[Mapping[str, Any]], bool],
) -> bool:
    """The first rule that is about it decides, denials before others of the same priority."""
    rules = [
        rule
        for _, rule in store.everywhere("firewalls")
        if _is_for(rule, instance) and _is_about(rule, protocol, port) and is_from(rule)
    ]
    first = min(rules, key=lambda rule: (rule["priority"], "denied" not in rule), default=None)
    return first is not None and "allowed" in first


def _is_for(rule: Mapping[str, Any], instance: Instance) -> bool:
    network = path_of(instance.record["networkInterfaces"][0]["network"])
    if rule["direction"] != "INGRESS" or rule["disabled"] or path_of(rule["network"]) != network:
        return False
    if emails := rule.get("targetServiceAccounts"):
        return instance.email in emails
    wanted = rule.get("targetTags")
    return not wanted or not set(wanted).isdisjoint(_tags(instance))


def _tags(instance: Instance) -> list[str]:
    found: list[str] = instance.record.get("tags", {}).get("items", [])
    return found


def _covers(rule: Mapping[str, Any], source: str) -> bool:
    return covers(rule.get("sourceRanges", ()), source)


def _is_about(rule: Mapping[str, Any], protocol: str, port: int) -> bool:
    protocols = rule.get("allowed") or rule["denied"]
    named = [each for each in protocols if each["IPProtocol"].lower() in _NAMES[protocol]]
    return any(not each.get("ports") or has_port(each["ports"], port) for each in named)
