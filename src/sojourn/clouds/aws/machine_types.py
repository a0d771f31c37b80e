"""Machine types by their common names."""

from __future__ import annotations

import re

from sojourn.clouds.vm.sizes import Sizes

__all__ = ["has_gpus", "instance_type", "stand_ins"]

_TYPES = {
    "s": "t2.micro",
    "m": "m5.2xlarge",
    "l": "m5.8xlarge",
    "xl": "m5.16xlarge",
    "m+t4": "g4dn.xlarge",
    "l+t4": "g4dn.12xlarge",
    "m+k80": "p2.xlarge",
    "l+k80": "p2.8xlarge",
    "xl+k80": "p2.16xlarge",
    "m+v100": "p3.2xlarge",
    "l+v100": "p3.8xlarge",
    "xl+v100": "p3.16xlarge",
    "m+a10g": "g5.2xlarge",
    "l+a10g": "g5.12xlarge",
    "xl+a10g": "g5.48xlarge",
    "m+l4": "g6.2xlarge",
    "l+l4": "g6.12xlarge",
    "xl+l4": "g6.48xlarge",
    "xl+a100": "p4d.24xlarge",
    "m+h100": "p5.4xlarge",
    "xl+h100": "p5.48xlarge",
}
# For common names of machines that AWS withdraws: at least as many GPUs with as much memory, and no
# fewer cores, the best first; not every region has all of them.
_STAND_INS = {
    "m+v100": ("g5.4xlarge", "g6.4xlarge", "g4dn.4xlarge"),
    "l+v100": ("g5.24xlarge", "g6.24xlarge", "g4dn.metal"),
    "xl+v100": ("g5.48xlarge", "g6.48xlarge", "g4dn.metal"),
}
_SIZES = Sizes(
    "AWS",
    "an EC2 type",
    _TYPES,
    re.compile(r"[a-z0-9-]+\.[a-z0-9-]+"),
    "g4dn.xlarge",
)


# Families with NVIDIA's GPUs; g4ad has others.
_WITH_GPUS = re.compile(r"(g\d(?!ad)|gr\d|p\d)")


def has_gpus(type: str) -> bool:
    """Whether an EC2 type has GPUs of NVIDIA."""
    return bool(_WITH_GPUS.match(type))


def stand_ins(name: str) -> tuple[str, ...]:
    """The types to use where that of a common name cannot be had; none for a type of AWS's own."""
    return _STAND_INS.get(name, ())


def instance_type(name: str) -> str:
    """AWS's name of a machine type."""
    return _SIZES.find(name)
