"""What Google offers: regions, zones, machine types, accelerators, images. A small part of it.

What is made of it does not belong here.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from typing import Any

from tests.simcloud.gcp.project import PROJECT, ROOT

_REGIONS = {
    "asia-east1": "abc",
    "europe-north1": "abc",
    "europe-west1": "bcd",
    "europe-west4": "abc",
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-west1": "abc",
}
ZONES = [f"{region}-{letter}" for region, letters in _REGIONS.items() for letter in letters]
_SINCE = "1969-12-31T16:00:00.000-08:00"

# Zones by accelerator
ACCELERATORS = {
    "nvidia-h100-80gb": ("us-central1-a", "us-east1-b", "europe-west4-b"),
    "nvidia-l4": (
        "us-west1-a", "us-west1-b", "us-west1-c", "us-central1-a", "us-central1-b",
        "us-central1-c", "us-east1-b", "us-east1-c", "us-east1-d", "europe-west1-b",
        "europe-west1-c", "europe-west4-a", "europe-west4-b", "europe-west4-c", "asia-east1-a",
    ),
    "nvidia-tesla-a100": (
        "us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "us-west1-b",
        "us-east1-b", "europe-west4-a", "europe-west4-b",
    ),
    "nvidia-tesla-p100": ("us-west1-a", "us-west1-b", "us-central1-c", "europe-west1-b"),
    "nvidia-tesla-t4": (
        "us-west1-a", "us-west1-b", "us-central1-a", "us-central1-b", "us-central1-c",
        "us-central1-f", "us-east1-c", "us-east1-d", "europe-west1-b", "europe-west1-c",
        "europe-west1-d", "europe-west4-a", "europe-west4-b", "europe-west4-c", "asia-east1-a",
    ),
    "nvidia-tesla-v100": (
        "us-west1-a", "us-west1-b", "us-central1-a", "us-central1-b", "us-central1-c",
        "us-central1-f", "us-east1-c", "europe-west4-a", "europe-west4-b", "asia-east1-c",
    ),
}  # fmt: skip
COUNTS = {
    "nvidia-tesla-t4": (1, 2, 4), "nvidia-tesla-v100": (1, 2, 4, 8), "nvidia-tesla-p100": (1, 2, 4),
}  # fmt: skip
"""How many of those that can be attached to machines."""

_SHAPES = {"standard": 4.0, "highmem": 8.0, "highcpu": 1.0}
_FAMILIES = {
    "c2": (("standard",), (4, 8, 16, 30, 60)),
    "c4a": (("standard", "highmem", "highcpu"), (1, 2, 4, 8, 16, 32, 48, 64, 72)),
    "e2": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32)),
    "n1": (("standard", "highmem", "highcpu"), (1, 2, 4, 8, 16, 32, 64, 96)),
    "n2": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32, 48, 64, 80, 96, 128)),
    "n2d": (("standard", "highmem", "highcpu"), (2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 224)),
    "t2a": (("standard",), (1, 2, 4, 8, 16, 32, 48)),
}
_OTHERS = {
    "e2-medium": (2, 4096), "e2-micro": (2, 1024), "e2-small": (2, 2048), "f1-micro": (1, 614),
    "g1-small": (1, 1740),
}  # fmt: skip
_WITH_GPUS = {
    "a2-highgpu-1g": (12, 87040, "nvidia-tesla-a100", 1),
    "a2-highgpu-2g": (24, 174080, "nvidia-tesla-a100", 2),
    "a2-highgpu-4g": (48, 348160, "nvidia-tesla-a100", 4),
    "a2-highgpu-8g": (96, 696320, "nvidia-tesla-a100", 8),
    "a3-highgpu-1g": (26, 239616, "nvidia-h100-80gb", 1),
    "a3-highgpu-2g": (52, 479232, "nvidia-h100-80gb", 2),
    "a3-highgpu-4g": (104, 958464, "nvidia-h100-80gb", 4),
    "a3-highgpu-8g": (208, 1916928, "nvidia-h100-80gb", 8),
    "g2-standard-12": (12, 49152, "nvidia-l4", 1),
    "g2-standard-16": (16, 65536, "nvidia-l4", 1),
    "g2-standard-24": (24, 98304, "nvidia-l4", 2),
    "g2-standard-32": (32, 131072, "nvidia-l4", 1),
    "g2-standard-4": (4, 16384, "nvidia-l4", 1),
    "g2-standard-48": (48, 196608, "nvidia-l4", 4),
    "g2-standard-8": (8, 32768, "nvidia-l4", 1),
    "g2-standard-96": (96, 393216, "nvidia-l4", 8),
}
_CUSTOM = re.compile(r"(?:(e2|n1|n2|n2d)-)?custom-(\d+)-(\d+)(-ext)?")
_MOST_CPUS = {"e2": 32, "n1": 96, "n2": 128, "n2d": 224}
_MEMORY_EACH = {"e2": (512, 8192), "n1": (922, 6656), "n2": (512, 8192), "n2d": (512, 8192)}

# Project, family, size of its disk, architecture, dates
_IMAGES = (
    ("debian-cloud", "debian-12", 10, "X86_64", ("20260915", "20261013")),
    ("deeplearning-platform-release", "common-cu128-ubuntu-2204-nvidia-570", 50, "X86_64",
     ("20260901", "20261004")),
    ("deeplearning-platform-release", "common-cu128-ubuntu-2404-nvidia-570", 50, "X86_64",
     ("20260901", "20261004")),
    ("ubuntu-os-cloud", "ubuntu-2204-lts", 10, "X86_64", ("20260912", "20261024")),
    ("ubuntu-os-cloud", "ubuntu-2204-lts-arm64", 10, "ARM64", ("20260912", "20261024")),
    ("ubuntu-os-cloud", "ubuntu-2404-lts-amd64", 10, "X86_64", ("20260912", "20261024")),
    ("ubuntu-os-cloud", "ubuntu-2404-lts-arm64", 10, "ARM64", ("20260912", "20261024")),
)  # fmt: skip
PUBLIC = {project for project, *_ in _IMAGES}
ARM = ("c4a", "t2a")


@dataclass(frozen=True)
class Shape:
    """A machine type."""

    name: str
    cpus: int
    memory: int  # MB
    accelerator: str = ""
    count: int = 0

    @property
    def architecture(self) -> str:
        return "ARM64" if self.name.startswith(ARM) else "X86_64"


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]


def regions() -> list[str]:
    return sorted(_REGIONS)


def shape(name: str, zone: str) -> Shape | None:
    """The machine type of a name, if the zone has it."""
    found = _shapes().get(name) or _custom(name)
    if found and found.accelerator and zone not in ACCELERATORS[found.accelerator]:
        return None
    return found


def names(zone: str) -> list[str]:
    """The machine types that a zone lists; custom ones are in no list."""
    return sorted(name for name in _shapes() if shape(name, zone))


@functools.cache
def _shapes() -> dict[str, Shape]:
    found = {name: Shape(name, *rest) for name, rest in _OTHERS.items()}
    found |= {name: Shape(name, *rest) for name, rest in _WITH_GPUS.items()}
    for family, (kinds, sizes) in _FAMILIES.items():
        for kind in kinds:
            for size in sizes:
                name = f"{family}-{kind}-{size}"
                found[name] = Shape(name, size, int(size * _SHAPES[kind] * 1024))
    return found


def _custom(name: str) -> Shape | None:
    match = _CUSTOM.fullmatch(name)
    if match is None:
        return None
    family, cpus, memory = match[1] or "n1", int(match[2]), int(match[3])
    least, most = _MEMORY_EACH[family]
    if (cpus != 1 and cpus % 2) or not 1 <= cpus <= _MOST_CPUS[family] or memory % 256:
        return None
    if memory < cpus * least or (memory > cpus * most and not match[4]):
        return None
    return Shape(name, cpus, memory)


def describe_shape(found: Shape, zone: str) -> dict[str, Any]:
    gpus = [{"guestAcceleratorType": found.accelerator, "guestAcceleratorCount": found.count}]
    return {
        "kind": "compute#machineType",
        "id": _id(found.name),
        "creationTimestamp": _SINCE,
        "name": found.name,
        "description": f"{found.cpus} vCPUs, {found.memory / 1024:g} GB RAM",
        "guestCpus": found.cpus,
        "memoryMb": found.memory,
        "imageSpaceGb": 0,
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "zone": zone,
        "selfLink": f"{ROOT}projects/{PROJECT}/zones/{zone}/machineTypes/{found.name}",
        "isSharedCpu": found.name in _OTHERS,
        "architecture": found.architecture,
        **({"accelerators": gpus} if found.accelerator else {}),
    }


def describe_accelerator(name: str, zone: str) -> dict[str, Any]:
    return {
        "kind": "compute#acceleratorType",
        "id": _id(name),
        "creationTimestamp": _SINCE,
        "name": name,
        "description": name.replace("-", " ").title(),
        "zone": f"{ROOT}projects/{PROJECT}/zones/{zone}",
        "selfLink": f"{ROOT}projects/{PROJECT}/zones/{zone}/acceleratorTypes/{name}",
        "maximumCardsPerInstance": max(COUNTS.get(name, (8,))),
    }


def describe_zone(zone: str) -> dict[str, Any]:
    region = region_of(zone)
    return {
        "kind": "compute#zone",
        "id": _id(zone),
        "creationTimestamp": _SINCE,
        "name": zone,
        "description": zone,
        "status": "UP",
        "region": f"{ROOT}projects/{PROJECT}/regions/{region}",
        "selfLink": f"{ROOT}projects/{PROJECT}/zones/{zone}",
        "availableCpuPlatforms": ["Intel Broadwell", "Intel Skylake"],
    }


def images(project: str) -> list[dict[str, Any]]:
    """All images of a project of Google or its partners."""
    found = []
    for owner, family, size, architecture, dates in _IMAGES:
        for date in dates if owner == project else ():
            name = f"{family}-v{date}"
            made = f"{date[:4]}-{date[4:6]}-{date[6:]}T00:00:00.000-07:00"
            found.append(
                {
                    "kind": "compute#image",
                    "id": _id(name),
                    "creationTimestamp": made,
                    "name": name,
                    "family": family,
                    "status": "READY",
                    "sourceType": "RAW",
                    "architecture": architecture,
                    "diskSizeGb": str(size),
                    "archiveSizeBytes": "1000000000",
                    "selfLink": f"{ROOT}projects/{owner}/global/images/{name}",
                }
            )
    return found


def image(path: str) -> dict[str, Any] | None:
    """The image that a path means: by its name, or the newest of a family."""
    match = re.fullmatch(r"projects/([^/]+)/global/images/(family/)?([^/]+)", path)
    if match is None:
        return None
    found: dict[str, Any]
    for found in reversed(images(match[1])):
        if match[3] == found["family" if match[2] else "name"]:
            return found
    return None


def _id(name: str) -> str:
    return str(int(hashlib.sha256(name.encode()).hexdigest()[:15], 16))
