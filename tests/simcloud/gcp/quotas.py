"""Quotas of regions, and of the project for GPUs: limits that a test may set, and what is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.simcloud.gcp import catalogue
from tests.simcloud.gcp.catalogue import region_of
from tests.simcloud.gcp.market import LaunchRefusedError, quota_exceeded
from tests.simcloud.gcp.store import Store
from tests.simcloud.gcp.wire import GCPError

_DEFAULTS = {
    "CPUS": 2000.0,
    "PREEMPTIBLE_CPUS": 2000.0,
    "INSTANCES": 6000.0,
    "INSTANCE_GROUP_MANAGERS": 500.0,
    "DISKS_TOTAL_GB": 250000.0,
    "IN_USE_ADDRESSES": 2300.0,
    "NVIDIA_L4_GPUS": 64.0,
    "NVIDIA_T4_GPUS": 64.0,
    "NVIDIA_V100_GPUS": 64.0,
    "NVIDIA_A100_GPUS": 64.0,
    "PREEMPTIBLE_NVIDIA_L4_GPUS": 64.0,
    "PREEMPTIBLE_NVIDIA_T4_GPUS": 64.0,
    "PREEMPTIBLE_NVIDIA_V100_GPUS": 64.0,
    "PREEMPTIBLE_NVIDIA_A100_GPUS": 64.0,
}
_GLOBAL = {"GPUS_ALL_REGIONS": 64.0, "FIREWALLS": 200.0, "INSTANCE_TEMPLATES": 300.0}
_COUNTED = {
    "firewalls": "FIREWALLS",
    "instanceGroupManagers": "INSTANCE_GROUP_MANAGERS",
    "instanceTemplates": "INSTANCE_TEMPLATES",
}
GLOBAL = "global"


class Quotas:
    """Of all regions and of the project."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._limits: dict[tuple[str, str], float] = {}

    def set(self, place: str, metric: str, limit: float) -> None:
        """`place` is a region or `global`."""
        assert metric in (_GLOBAL if place == GLOBAL else _DEFAULTS), f"{metric} is not known here"
        self._limits[place, metric] = limit

    def described(self, place: str) -> list[dict[str, Any]]:
        used = self._used(place)
        known = _GLOBAL if place == GLOBAL else _DEFAULTS
        return [
            {"metric": metric, "limit": self._limit(place, metric), "usage": used.get(metric, 0.0)}
            for metric in known
        ]

    def check(self, properties: Mapping[str, Any], zone: str, spot: bool) -> None:
        """Refuse an instance for which there is no quota left."""
        region = region_of(zone)
        for place in (region, GLOBAL):
            used = self._used(place)
            for metric, more in _needed(properties, zone, spot, place):
                limit = self._limit(place, metric)
                if used.get(metric, 0.0) + more > limit:
                    raise LaunchRefusedError(quota_exceeded(metric, limit, place))

    def check_count(self, collection: str, place: str) -> None:
        """Refuse another firewall rule, template or group beyond the limit."""
        metric = _COUNTED[collection]
        limit = self._limit(place, metric)
        if self._used(place).get(metric, 0.0) + 1 > limit:
            message = quota_exceeded(metric, limit, place).message
            raise GCPError("quotaExceeded", message, 403)

    def _limit(self, place: str, metric: str) -> float:
        known = _GLOBAL if place == GLOBAL else _DEFAULTS
        return self._limits.get((place, metric), known[metric])

    def _used(self, place: str) -> dict[str, float]:
        used: dict[str, float] = {}
        for collection, metric in _COUNTED.items():
            for path, _ in self._store.everywhere(collection):
                scope = path.split("/")[3]
                if place == (GLOBAL if "/global/" in path else region_of(scope)):
                    used[metric] = used.get(metric, 0.0) + 1
        for path, record in self._store.everywhere("instances"):
            zone = path.split("/")[3]
            if place in (GLOBAL, region_of(zone)) and record["status"] != "TERMINATED":
                spot = bool(record["scheduling"].get("preemptible"))
                for metric, more in _needed(record, zone, spot, place):
                    used[metric] = used.get(metric, 0.0) + more
        return used


def _needed(
    given: Mapping[str, Any], zone: str, spot: bool, place: str
) -> Iterator[tuple[str, float]]:
    shape = catalogue.shape(given["machineType"].rpartition("/")[2], zone)
    gpus = [
        (each["acceleratorType"].rpartition("/")[2], each["acceleratorCount"])
        for each in given.get("guestAccelerators", [])
    ]
    if shape and shape.accelerator:
        gpus.append((shape.accelerator, shape.count))
    if place == GLOBAL:
        if gpus:
            yield "GPUS_ALL_REGIONS", float(sum(count for _, count in gpus))
        return
    yield "INSTANCES", 1.0
    yield "PREEMPTIBLE_CPUS" if spot else "CPUS", float(shape.cpus if shape else 0)
    for name, count in gpus:
        kind = name.removeprefix("nvidia-").removeprefix("tesla-").partition("-")[0].upper()
        metric = f"{'PREEMPTIBLE_' if spot else ''}NVIDIA_{kind}_GPUS"
        if metric in _DEFAULTS:
            yield metric, float(count)
