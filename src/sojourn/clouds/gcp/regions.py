"""Zones by the common names of regions."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["region_of", "zone"]

_ZONES = {
    "us-west": "us-west1-b",
    "us-east": "us-east1-c",
    "eu-north": "europe-north1-a",
    "eu-west": "europe-west1-d",
}
_ZONE = re.compile(r"[a-z]+(-[a-z]+)+\d+-[a-z]")
_REGION = re.compile(r"[a-z]+(-[a-z]+)+\d+")


def zone(name: str) -> str:
    """Google's name of a zone; of none, the first."""
    name = name or next(iter(_ZONES))
    if name in _ZONES:
        return _ZONES[name]
    if _REGION.fullmatch(name):
        raise InvalidInput("region", f"must be a zone, such as {name}-b, got the region {name!r}")
    if not _ZONE.fullmatch(name):
        raise InvalidInput(
            "region",
            f"unknown zone {name!r}; specify a Google Cloud zone, such as us-east1-c, or one of: "
            f"{', '.join(_ZONES)}",
        )
    return name


def region_of(zone: str) -> str:
    """The region that a zone is in."""
    return zone.rpartition("-")[0]
