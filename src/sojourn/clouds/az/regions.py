"""Regions by their common names."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["region"]

_REGIONS = {
    "us-west": "westus2",
    "us-east": "eastus",
    "eu-north": "northeurope",
    "eu-west": "westeurope",
}
_REGION = re.compile(r"[a-z]+\d?")


def region(name: str) -> str:
    """Azure's name of a region; of none, the first."""
    name = name or next(iter(_REGIONS))
    if name in _REGIONS:
        return _REGIONS[name]
    plain = name.replace(" ", "").lower()  # "West US 2" is westus2
    if not _REGION.fullmatch(plain):
        raise InvalidInput(
            "region",
            f"unknown region {name!r}; specify an Azure region, such as eastus, or one of: "
            f"{', '.join(_REGIONS)}",
        )
    return plain
