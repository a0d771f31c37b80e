"""Who gets through to an instance: its security groups tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.simcloud.common.ranges import covers

if TYPE_CHECKING:
    from tests.simcloud.aws.fleet import Instance

_EVERYTHING = "-1"


def admits(instance: Instance, port: int, source: str) -> bool:
    """By TCP, from an address outside. Groups only allow, and what none allows is dropped."""
    return any(_is_about(rule, "tcp", port) and _is_from(rule, source) for rule in _rules(instance))


def connects(source: Instance, target: Instance, protocol: str, port: int) -> bool:
    """From one instance to another, by its address in the network that both are in."""
    groups = {group.id for group in source.record.security_groups}
    return any(
        _is_about(rule, protocol, port)
        and (_is_from(rule, source.place[1]) or _source_group(rule) in groups)
        for rule in _rules(target)
    )


def _rules(instance: Instance) -> list[Any]:
    groups = instance.record.security_groups
    return [rule for group in groups for rule in group.ingress_rules]


def _source_group(rule: Any) -> str:
    """A rule for another group is for machines, and lets nobody in from outside."""
    return str((rule.source_group or {}).get("GroupId", ""))


def _is_from(rule: Any, source: str) -> bool:
    ranges = rule.ip_range or {}
    given = str(ranges.get("CidrIp") or ranges.get("CidrIpv6") or "")
    return bool(given) and covers([given], source)


def _is_about(rule: Any, protocol: str, port: int) -> bool:
    if rule.ip_protocol == _EVERYTHING:
        return True
    return rule.ip_protocol == protocol and port in range(rule.from_port, rule.to_port + 1)
