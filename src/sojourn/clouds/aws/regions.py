"""Regions by their common names."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["HOME_REGIONS", "in_partition", "region"]

_REGIONS = {
    "us-west": "us-west-1",
    "us-east": "us-east-1",
    "eu-north": "eu-north-1",
    "eu-west": "eu-west-1",
}
HOME_REGIONS = tuple(_REGIONS.values())

_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
# Partitions have names and addresses of their own, and regions that begin like this.
_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov"}


def region(name: str) -> str:
    """AWS's name of a region; of none, the first."""
    name = name or next(iter(_REGIONS))
    if name in _REGIONS:
        return _REGIONS[name]
    if not _REGION.fullmatch(name):
        raise InvalidInput(
            "region",
            f"unknown region {name!r}; specify an AWS region, such as us-east-1, or one of: "
            f"{', '.join(_REGIONS)}",
        )
    for start, partition in _PARTITIONS.items():
        if name.startswith(start):
            raise in_partition(name, partition)
    return name


def in_partition(region: str, partition: str) -> InvalidInput:
    """The error for a region that is in another partition than most."""
    return InvalidInput(
        "region",
        f"{region} is in the partition {partition}, which is not supported; "
        "choose a region outside China and GovCloud",
    )
