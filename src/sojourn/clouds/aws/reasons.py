"""Why a group cannot launch machines: AWS's paragraphs as short sentences that say what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.clouds.aws.machine_types import instance_type

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["quota_name", "reason"]

_LONGEST = 200  # characters of what we do not know
_SPOT = "could not launch spot|no spot capacity|max ?spot ?instance ?count"
_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
# Families of machine types that do not share the quota of the others.
_ON_DEMAND = {"g": "G and VT", "vt": "G and VT", "p": "P", "inf": "Inf", "trn": "Trn"}
_ON_DEMAND |= {"dl": "DL", "f": "F", "hpc": "HPC", "u": "High Memory", "x": "X"}
_ON_SPOT = {**_ON_DEMAND, "p": "P4, P3 and P2", "p5": "P5"}
# What AWS says, and what we say.
_KNOWN = (
    (
        r"InsufficientInstanceCapacity|UnfulfillableCapacity|not have sufficient|no spot capacity",
        "AWS has no {market}capacity for {type} right now and keeps trying: "
        "wait, or choose another machine or region",
    ),
    (
        r"current vCPU limit of (?P<limit>\d+)",
        "the quota {quota!r} of {limit} vCPUs is too small: request an increase in Service Quotas",
    ),
    (
        r"Max ?Spot ?Instance ?Count ?Exceeded|InstanceLimitExceeded|VcpuLimitExceeded"
        r"|limit exceeded",
        "the quota {quota!r} is used up: request an increase in Service Quotas",
    ),
    (
        r"request price of (?P<price>[\d.]*\d).*fulfillment price of (?P<minimum>[\d.]*\d)",
        "the spot price is {minimum} USD per hour, above the maximum of {price}: "
        "wait, or create the task with a higher spot price",
    ),
    (
        r"not supported in your requested Availability Zone \((?P<zone>[\w-]+)\)",
        "{type} is not available in zone {zone}: choose another machine or region",
    ),
    (
        r"image id '\[?(?P<image>[\w-]+)\]?' does not exist",
        "image {image} no longer exists: create the task again with another image",
    ),
    (
        r"(?P<profile>[^\s()]+)\) for parameter iamInstanceProfile",
        "instance profile {profile} not found: create it, or choose another permission_set",
    ),
    (
        r"not authorized to perform|UnauthorizedOperation|AccessDenied",
        "missing permission to start machines: see docs/aws.md for the full policy",
    ),
)


def reason(text: str, task: Task | None) -> str:
    """What to tell a user of a launch that failed with this text."""
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, text, re.IGNORECASE)
        if found:
            kind = _type_in(text) or (instance_type(task.machine) if task else "this machine")
            on_spot = task.spot >= 0 if task else bool(re.search(_SPOT, text, re.IGNORECASE))
            market = "spot " if on_spot else ""
            quota = quota_name(kind, spot=on_spot)
            return sentence.format(type=kind, market=market, quota=quota, **found.groupdict())
    return _short(text)


def quota_name(type: str, *, spot: bool) -> str:
    """The quota that limits machines of a type, by its name in Service Quotas."""
    family = re.match(r"[a-z]+", type)
    generation = re.match(r"[a-z]+\d+", type)
    names = _ON_SPOT if spot else _ON_DEMAND
    found = names.get(generation[0] if generation else "") or names.get(family[0] if family else "")
    group = found or _STANDARD
    return f"All {group} Spot Instance Requests" if spot else f"Running On-Demand {group} instances"


def _type_in(text: str) -> str:
    found = re.search(r"(?:sufficient |instance type \()([a-z][\w-]*\.[\w-]+)", text)
    return found[1] if found else ""


def _short(text: str) -> str:
    """The beginning of it, without what is said of every launch that failed."""
    text = re.sub(r"\s*Launching EC2 instance failed\.?$", "", text).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3].rstrip() + "..."
