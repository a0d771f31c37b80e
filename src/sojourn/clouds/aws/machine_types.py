"""Machine types by their common names."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["instance_type"]

_TYPES = {
    "s": "t2.micro",
    "m": "m5.2xlarge",
    "l": "m5.8xlarge",
    "xl": "m5.16xlarge",
    "m+t4": "g4dn.xlarge",
    "m+k80": "p2.xlarge",
    "l+k80": "p2.8xlarge",
    "xl+k80": "p2.16xlarge",
    "m+v100": "p3.2xlarge",
    "l+v100": "p3.8xlarge",
    "xl+v100": "p3.16xlarge",
}
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")


def instance_type(name: str) -> str:
    """AWS's name of a machine type."""
    if name in _TYPES:
        return _TYPES[name]
    if not _TYPE.fullmatch(name):
        raise InvalidInput(
            "machine",
            f"unknown machine type {name!r}; specify an EC2 type, such as g4dn.xlarge, or one of: "
            f"{', '.join(_TYPES)}",
        )
    return name
