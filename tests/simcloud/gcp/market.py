"""What can be launched where, and what is told otherwise. All of it is as a test says."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from tests.simcloud.common import market as common
from tests.simcloud.gcp.operations import Failure
from tests.simcloud.gcp.project import PROJECT


class Refusal(enum.Enum):
    """Reasons for which Google refuses instances."""

    CAPACITY = "ZONE_RESOURCE_POOL_EXHAUSTED"
    CAPACITY_WITH_DETAILS = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    QUOTA = "QUOTA_EXCEEDED"
    GPU_QUOTA = "QUOTA_EXCEEDED GPUS_ALL_REGIONS"
    UNSUPPORTED = "UNSUPPORTED_OPERATION"
    INTERNAL = "INTERNAL_ERROR"


class LaunchRefusedError(Exception):
    """An instance cannot be created."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True)
class Wanted:
    """An instance that is about to be created."""

    type: str
    zone: str
    spot: bool

    @property
    def region(self) -> str:
        return self.zone.rpartition("-")[0]


class Market(common.Market["Refusal | Failure"]):
    """Everything can be had, until a test says otherwise."""

    def take(self, wanted: Wanted) -> None:
        """Let it be created, or refuse it."""
        why = self.refusal(wanted)
        if why is None and not self.has_room(wanted):
            why = Refusal.CAPACITY
        if why is not None:
            failure = why if isinstance(why, Failure) else _FAILURES[why](wanted)
            raise LaunchRefusedError(failure)


def quota_exceeded(metric: str, limit: float, place: str) -> Failure:
    """A quota of the region, or of the whole project (`global`)."""
    where = f"in region {place}" if place != "global" else "globally"
    return Failure(
        "QUOTA_EXCEEDED",
        f"Quota '{metric}' exceeded.  Limit: {limit:.1f} {where}.",
        403,
        (
            {
                "quotaInfo": {
                    "metricName": f"compute.googleapis.com/{metric.lower()}",
                    "limitName": f"{metric.replace('_', '-')}-per-project-region",
                    "dimensions": {"region": place},
                    "limit": limit,
                }
            },
        ),
    )


def _exhausted(code: str) -> Callable[[Wanted], Failure]:
    def failure(wanted: Wanted) -> Failure:
        zone = f"projects/{PROJECT}/zones/{wanted.zone}"
        message = (
            f"The zone '{zone}' does not have enough resources available to fulfill the request.  "
            f"Try a different zone, or try again later."
        )
        if code.endswith("_WITH_DETAILS"):
            message = (
                f"The zone '{zone}' does not have enough resources available to fulfill the "
                f"request.  '(resource type:compute)'."
            )
        attempted = wanted.zone
        details = {
            "errorInfo": {
                "reason": "resource_availability",
                "domain": "compute.googleapis.com",
                "metadatas": {"vmType": wanted.type, "attemptedZone": attempted},
            }
        }
        return Failure(code, message, 503, (details,))

    return failure


_FAILURES: dict[Refusal, Callable[[Wanted], Failure]] = {
    Refusal.CAPACITY: _exhausted("ZONE_RESOURCE_POOL_EXHAUSTED"),
    Refusal.CAPACITY_WITH_DETAILS: _exhausted("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"),
    Refusal.QUOTA: lambda wanted: quota_exceeded(
        "PREEMPTIBLE_CPUS" if wanted.spot else "CPUS", 0.0, wanted.region
    ),
    Refusal.GPU_QUOTA: lambda wanted: quota_exceeded("GPUS_ALL_REGIONS", 0.0, "global"),
    Refusal.UNSUPPORTED: lambda wanted: Failure(
        "UNSUPPORTED_OPERATION",
        f"The machine type {wanted.type} is not supported in zone {wanted.zone}.",
    ),
    Refusal.INTERNAL: lambda wanted: Failure(
        "INTERNAL_ERROR", "Internal error. Please try again or contact Google Support.", 500
    ),
}
