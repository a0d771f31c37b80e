"""Machine types by their common names, and with the GPUs that are attached to them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sojourn.clouds.vm.sizes import Sizes
from sojourn.core.errors import InvalidInput

__all__ = ["MachineType", "machine_type"]

_T4, _V100 = "nvidia-tesla-t4", "nvidia-tesla-v100"
_TYPES = {
    "s": "g1-small",
    "m": "e2-custom-8-32768",
    "l": "e2-custom-32-131072",
    "xl": "n2-custom-64-262144",
    "m+t4": f"n1-standard-4+{_T4}*1",
    "l+t4": f"n1-standard-32+{_T4}*4",
    "m+v100": f"custom-8-65536-ext+{_V100}*1",
    "l+v100": f"custom-32-262144-ext+{_V100}*4",
    "xl+v100": f"custom-64-524288-ext+{_V100}*8",
    "m+l4": "g2-standard-8",
    "l+l4": "g2-standard-48",
    "xl+l4": "g2-standard-96",
    "m+a100": "a2-highgpu-1g",
    "l+a100": "a2-highgpu-4g",
    "xl+a100": "a2-highgpu-8g",
    "m+h100": "a3-highgpu-1g",
    "l+h100": "a3-highgpu-4g",
    "xl+h100": "a3-highgpu-8g",
}
_SIZES = Sizes(
    "Google Cloud",
    "a Compute Engine type",
    _TYPES,
    re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+(\+[a-z][a-z0-9-]*\*[1-9]\d?)?"),
    f"n2-standard-8 or n1-standard-4+{_T4}*1",
)
_WITHDRAWN = "nvidia-tesla-k80"
_MOST_T4 = 4  # that a machine can have
_WITH_GPUS = ("a2-", "a3-", "a4-", "g2-", "g4-")  # types that have them without saying so


@dataclass(frozen=True)
class MachineType:
    """Google's name of it, and the GPUs to attach."""

    name: str
    accelerator: str = ""
    count: int = 0

    @property
    def has_gpus(self) -> bool:
        return bool(self.accelerator) or self.name.startswith(_WITH_GPUS)

    def __str__(self) -> str:
        return f"{self.name}+{self.accelerator}*{self.count}" if self.accelerator else self.name


def _instead(name: str) -> str:
    """What to write for a machine with K80s: the same with T4s, which fit the same types."""
    kind, _, gpu = name.partition("+")
    _, _, count = gpu.partition("*")
    own = f"{kind}+{_T4}*{min(int(count), _MOST_T4)}, " if count.isdecimal() else ""
    return f"{own}m+t4, l+t4 or m+l4 instead"


def machine_type(name: str) -> MachineType:
    """The machine type that a user means. Refuses what cannot be one."""
    _, _, gpu = name.partition("+")
    if gpu in ("k80", _WITHDRAWN) or gpu.startswith(f"{_WITHDRAWN}*"):
        raise InvalidInput("machine", f"Google Cloud withdrew K80s: use {_instead(name)}")
    kind, _, attached = _SIZES.find(name).partition("+")
    accelerator, _, count = attached.partition("*")
    return MachineType(kind, accelerator, int(count or 0))
