"""Machine types by their common names."""

from __future__ import annotations

import re

from sojourn.clouds.vm.sizes import Sizes

__all__ = ["has_gpus", "replacement", "size", "stand_in"]

_TYPES = {
    "s": "Standard_B1s",
    "m": "Standard_F8s_v2",
    "l": "Standard_F32s_v2",
    "xl": "Standard_F64s_v2",
    "m+t4": "Standard_NC4as_T4_v3",
    "l+t4": "Standard_NC64as_T4_v3",
    "m+k80": "Standard_NC6",
    "l+k80": "Standard_NC12",
    "xl+k80": "Standard_NC24",
    "m+v100": "Standard_NC6s_v3",
    "l+v100": "Standard_NC12s_v3",
    "xl+v100": "Standard_NC24s_v3",
    "m+a10": "Standard_NV36ads_A10_v5",
    "l+a10": "Standard_NV72ads_A10_v5",
    "m+a100": "Standard_NC24ads_A100_v4",
    "l+a100": "Standard_NC48ads_A100_v4",
    "xl+a100": "Standard_NC96ads_A100_v4",
    "m+h100": "Standard_NC40ads_H100_v5",
    "l+h100": "Standard_NC80adis_H100_v5",
}
# For common names of sizes that Azure withdrew: as many GPUs, no less memory for each, and no fewer
# cores.
_STAND_INS = {
    "m+v100": "Standard_NC16as_T4_v3",
    "l+v100": "Standard_NC64as_T4_v3",
    "xl+v100": "Standard_NC64as_T4_v3",
}
# What Azure withdrew, and what is nearest to it today.
_WITHDRAWN = (
    (re.compile(r"standard_nc\d+r?", re.IGNORECASE), "K80s", "m+t4 (Standard_NC4as_T4_v3)"),
    (re.compile(r"standard_nc\d+s_v2", re.IGNORECASE), "P100s", "m+t4 (Standard_NC4as_T4_v3)"),
    (
        re.compile(r"standard_(nc\d+r?s_v3|nd40rs_v2)", re.IGNORECASE),
        "V100s",
        "m+t4 (Standard_NC4as_T4_v3) or m+a100 (Standard_NC24ads_A100_v4)",
    ),
    (re.compile(r"standard_nd\d+r?s", re.IGNORECASE), "P40s", "m+t4 (Standard_NC4as_T4_v3)"),
    (re.compile(r"standard_nv\d+", re.IGNORECASE), "M60s", "m+a10 (Standard_NV36ads_A10_v5)"),
)
_SIZES = Sizes(
    "Azure",
    "an Azure size",
    _TYPES,
    re.compile(r"(Standard|Basic)_[A-Za-z0-9_-]+"),
    "Standard_NC4as_T4_v3",
)


# Sizes with NVIDIA's GPUs; others of these families have AMD's.
_WITH_GPUS = re.compile(r"standard_n[cdv](?!\d+as_v4|.*_mi\d)", re.IGNORECASE)


def has_gpus(size: str) -> bool:
    """Whether a size has GPUs of NVIDIA."""
    return bool(_WITH_GPUS.match(size))


def stand_in(name: str) -> str:
    """The size to use where that of a common name cannot be had; empty: none."""
    return _STAND_INS.get(name, "")


def size(name: str) -> str:
    """Azure's name of a machine type."""
    return _SIZES.find(name)


def replacement(size: str) -> tuple[str, str] | None:
    """The chips of a size that Azure withdrew, and what to use instead."""
    for pattern, chips, instead in _WITHDRAWN:
        if pattern.fullmatch(size):
            return chips, instead
    return None
