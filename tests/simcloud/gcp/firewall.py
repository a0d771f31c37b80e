"""Who gets through to an instance by TCP: the firewall rules of its network tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simcloud.common.ranges import covers, has_port
from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.store import Store, path_of

_TCP = ("tcp", "6", "all")


def admits(store: Store, instance: Instance, port: int, source: str) -> bool:
    """The first rule that is about it decides, denials before others of the same priority."""
    rules = [
        rule
        for _, rule in store.everywhere("firewalls")
        if _is_for(rule, instance) and _is_about(rule, port, source)
    ]
    first = min(rules, key=lambda rule: (rule["priority"], "denied" not in rule), default=None)
    return first is not None and "allowed" in first


def _is_for(rule: Mapping[str, Any], instance: Instance) -> bool:
    network = path_of(instance.record["networkInterfaces"][0]["network"])
    if rule["direction"] != "INGRESS" or rule["disabled"] or path_of(rule["network"]) != network:
        return False
    if emails := rule.get("targetServiceAccounts"):
        return instance.email in emails
    wanted, own = rule.get("targetTags"), instance.record.get("tags", {}).get("items", [])
    return not wanted or not set(wanted).isdisjoint(own)


def _is_about(rule: Mapping[str, Any], port: int, source: str) -> bool:
    """Sources that are tags or accounts are machines, not somebody outside."""
    protocols = rule.get("allowed") or rule["denied"]
    ports = [each.get("ports") for each in protocols if each["IPProtocol"].lower() in _TCP]
    return covers(rule.get("sourceRanges", ()), source) and any(
        not each or has_port(each, port) for each in ports
    )
