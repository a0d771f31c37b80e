"""Rules of Compute Engine that its discovery document does not have, or has only in prose."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from tests.simcloud.gcp.wire import GCPError, invalid

NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
_PROTOCOLS = ("tcp", "udp", "icmp", "esp", "ah", "ipip", "sctp", "all")
_PORTS = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?")
_MOST_LABELS = 64
_LARGEST_VALUE = 256 << 10
_LARGEST_METADATA = 512 << 10
_RUN = (30, 120 * 86400)
_NOTICES = (0, 120)


def check_name(name: Any, field: str, longest: int = 63) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name) or len(name) > longest:
        pattern = "(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
        raise invalid(field, name, f"Must be a match of regex '{pattern}'")


def check_labels(labels: Mapping[str, Any], field: str) -> None:
    if len(labels) > _MOST_LABELS:
        raise invalid(field, len(labels), f"At most {_MOST_LABELS} labels are allowed.")
    for key, value in labels.items():
        if not _KEY.fullmatch(key):
            raise invalid(field, key, f"Label key '{key}' violates format constraints.")
        if not _VALUE.fullmatch(str(value)):
            raise invalid(field, value, f"Label value '{value}' violates format constraints.")


def check_metadata(metadata: Mapping[str, Any], field: str) -> None:
    items = metadata.get("items", [])
    keys = [item.get("key", "") for item in items]
    for key in keys:
        if keys.count(key) > 1:
            raise invalid(field, key, f"Metadata has duplicate key: {key}")
    total = 0
    for item in items:
        size = len(str(item.get("value", "")).encode())
        total += size + len(item.get("key", ""))
        if size > _LARGEST_VALUE:
            raise invalid(
                f"{field}.items[{keys.index(item['key'])}].value",
                "...",
                f"Value for metadata key is too large: {size} bytes, limit {_LARGEST_VALUE}.",
            )
    if total > _LARGEST_METADATA:
        raise invalid(field, "...", f"Metadata is too large: {total} bytes.")


def check_tags(tags: Mapping[str, Any], field: str) -> None:
    items = tags.get("items", [])
    if len(items) > 64:
        raise invalid(field, len(items), "At most 64 tags are allowed.")
    for tag in items:
        check_name(tag, f"{field}.items")


def check_firewall(rule: Mapping[str, Any]) -> None:
    """A rule that is made."""
    check_name(rule.get("name"), "resource.name")
    if not 0 <= rule.get("priority", 1000) <= 65535:
        raise invalid("resource.priority", rule["priority"], "Must be from 0 to 65535.")
    if bool(rule.get("allowed")) == bool(rule.get("denied")):
        message = "Exactly one of allowed or denied must be specified."
        raise GCPError("invalid", message, 400)
    for kind in ("allowed", "denied"):
        for index, each in enumerate(rule.get(kind, [])):
            _check_protocol(each, f"resource.{kind}[{index}]")
    outwards = rule.get("direction") == "EGRESS"
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if outwards and any(rule.get(name) for name in sources):
        raise invalid("resource.direction", "EGRESS", "Sources are for ingress rules.")
    if not outwards and rule.get("destinationRanges") and not rule.get("sourceRanges"):
        raise invalid("resource.destinationRanges", "...", "A source must be specified, too.")
    for name in ("sourceRanges", "destinationRanges"):
        for given in rule.get(name, []):
            try:
                ipaddress.ip_network(given)
            except ValueError as error:
                raise invalid(f"resource.{name}", given, f"{error}") from None
    for tag in (*rule.get("sourceTags", []), *rule.get("targetTags", [])):
        check_name(tag, "resource.targetTags")
    if rule.get("targetTags") and rule.get("targetServiceAccounts"):
        raise invalid("resource.targetTags", "...", "Not together with targetServiceAccounts.")


def _check_protocol(given: Mapping[str, Any], field: str) -> None:
    protocol = given.get("IPProtocol")
    if not protocol:
        raise GCPError("required", f"Required field '{field}.IPProtocol' not specified", 400)
    number = protocol.isdigit() and int(protocol) < 256
    if protocol.lower() not in _PROTOCOLS and not number:
        raise invalid(f"{field}.IPProtocol", protocol, "It is no protocol.")
    ports = given.get("ports", [])
    if ports and protocol.lower() not in ("tcp", "udp", "sctp", "6", "17"):
        raise invalid(f"{field}.ports", ports, f"Ports are not for protocol {protocol}.")
    for port in ports:
        match = _PORTS.fullmatch(port)
        if match is None or not 0 <= int(match[1]) <= int(match[2] or match[1]) <= 65535:
            raise invalid(f"{field}.ports", port, "Must be a port or a range of ports.")


def check_scheduling(given: Mapping[str, Any], with_gpus: bool, field: str) -> None:
    spot = given.get("provisioningModel") == "SPOT" or given.get("preemptible", False)
    maintenance = given.get("onHostMaintenance", "TERMINATE" if spot else "MIGRATE")
    if with_gpus and maintenance != "TERMINATE":
        message = "Instances with guest accelerators do not support live migration."
        raise invalid(f"{field}.onHostMaintenance", maintenance, message)
    if spot and given.get("automaticRestart", True):
        # Preemptible ones are never restarted, and the default is to restart
        message = "Spot or preemptible instances cannot be automatically restarted."
        raise invalid(f"{field}.automaticRestart", "true", message)
    if spot and maintenance != "TERMINATE":
        message = "Spot or preemptible instances cannot be migrated."
        raise invalid(f"{field}.onHostMaintenance", maintenance, message)
    _check_durations(given, bool(spot), field)


def _check_durations(given: Mapping[str, Any], spot: bool, field: str) -> None:
    limit, at = given.get("maxRunDuration"), given.get("terminationTime")
    action = given.get("instanceTerminationAction")
    if (limit or at) and spot and given.get("provisioningModel") != "SPOT":
        message = "Preemptible instances of the former kind cannot have a limited run time."
        raise invalid(f"{field}.maxRunDuration", limit or at, message)
    if limit is not None and at is not None:
        raise invalid(f"{field}.terminationTime", at, "Not together with maxRunDuration.")
    if limit is not None:
        seconds = int(limit.get("seconds", 0))
        if not _RUN[0] <= seconds <= _RUN[1]:
            message = f"Must be between {_RUN[0]} and {_RUN[1]} seconds."
            raise invalid(f"{field}.maxRunDuration", seconds, message)
    if (limit is not None or at is not None) and action not in ("STOP", "DELETE"):
        message = "An instance termination action must be specified with a limited run time."
        raise invalid(f"{field}.instanceTerminationAction", action, message)
    if action and not spot and limit is None and at is None:
        message = (
            "An instance termination action is for Spot instances and those with a limited run "
            "time."
        )
        raise invalid(f"{field}.instanceTerminationAction", action, message)
    notice = given.get("preemptionNoticeDuration")
    if notice is not None and (not spot or int(notice.get("seconds", 0)) not in _NOTICES):
        message = "Must be 0 or 120 seconds, of a Spot instance."
        raise invalid(f"{field}.preemptionNoticeDuration", notice, message)
