"""Why a group cannot create machines: Google's errors as short sentences that say what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.clouds.gcp.machine_types import machine_type

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["reason"]

_LONGEST = 200  # characters of what we do not know
# What Google says, and what we say.
_KNOWN = (
    (
        r"RESOURCE_POOL_EXHAUSTED|STOCKOUT|does not have enough resources available",
        "Google Cloud has no {market}capacity for {type} in {zone} right now and keeps trying: "
        "wait, or choose another machine or zone",
    ),
    (
        r"Quota '(?P<quota>[\w-]+)' exceeded\. +Limit: (?P<limit>\d+)",
        "the quota {quota} of {limit} is used up: request an increase in the console's Quotas page",
    ),
    (
        r"QUOTA_EXCEEDED",
        "a quota is used up: request an increase in the console's Quotas page",
    ),
    (
        r"service account '(?P<account>[^']+)' was not found",
        "service account {account} not found: create it, or choose another permission_set",
    ),
    (
        r"machineTypes/(?P<kind>[\w-]+)'.*does not exist",
        "{kind} is not available in {zone}: choose another machine or zone",
    ),
    (
        r"acceleratorTypes/(?P<kind>[\w-]+)' was not found",
        "{kind} is not available in {zone}: choose another machine or zone",
    ),
    (
        r"PERMISSIONS_ERROR|Required '(?P<permission>[\w.]+)' permission",
        "the project's own account for groups lacks permission to create machines: give "
        "PROJECT_NUMBER@cloudservices.gserviceaccount.com the role Editor",
    ),
)


def reason(code: str, message: str, zone: str, task: Task | None) -> str:
    """What to tell a user of a machine that could not be created."""
    text = f"{code}: {message}"
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, text)
        if found:
            kind = str(machine_type(task.machine)) if task else "this machine"
            market = "spot " if task and task.spot >= 0 else ""
            given = {"type": kind, "market": market, "zone": zone}
            return sentence.format(**{**given, **found.groupdict()})
    return message if len(message) <= _LONGEST else message[: _LONGEST - 3].rstrip() + "..."
