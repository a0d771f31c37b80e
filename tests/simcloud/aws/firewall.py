"""Who gets through to an instance by TCP: its security groups tell."""

from __future__ import annotations

from typing import Any

from tests.simcloud.aws.fleet import Instance
from tests.simcloud.common.ranges import covers

_EVERYTHING = "-1"


def admits(instance: Instance, port: int, source: str) -> bool:
    """Groups only allow, and what none of them allows is dropped."""
    groups = instance.record.security_groups
    return any(_allows(rule, port, source) for group in groups for rule in group.ingress_rules)


def _allows(rule: Any, port: int, source: str) -> bool:
    """A rule for another group is for machines, and lets nobody in from outside."""
    given = rule.ip_range.get("CidrIp") or rule.ip_range.get("CidrIpv6")
    if not given or not covers([given], source):
        return False
    if rule.ip_protocol == _EVERYTHING:
        return True
    return rule.ip_protocol == "tcp" and port in range(rule.from_port, rule.to_port + 1)
