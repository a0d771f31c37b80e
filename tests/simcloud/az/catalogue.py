"""What Azure offers: sizes of machines, images with their plans, and quotas.

Whether there is room for a machine does not belong here, see `offers`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """A size of machines, with what is asked about it."""

    name: str
    family: str
    cores: int
    memory: float  # GB
    gpus: int = 0
    spot: bool = True
    premium: bool = True
    retired: bool = False  # it is listed, and can be had nowhere
    architecture: str = "x64"


SIZES = {
    size.name: size
    for size in (
        Size("Standard_B1s", "standardBSFamily", 1, 1, spot=False),
        Size("Standard_B2s", "standardBSFamily", 2, 4, spot=False),
        Size("Standard_D2s_v3", "standardDSv3Family", 2, 8),
        Size("Standard_D2s_v5", "standardDSv5Family", 2, 8),
        Size("Standard_D4s_v5", "standardDSv5Family", 4, 16),
        Size("Standard_D8s_v5", "standardDSv5Family", 8, 32),
        Size("Standard_D2ps_v5", "standardDPSv5Family", 2, 8, architecture="Arm64"),
        Size("Standard_DS1_v2", "standardDSv2Family", 1, 3.5),
        Size("Standard_D1_v2", "standardDv2Family", 1, 3.5, premium=False),
        Size("Standard_F2s_v2", "standardFSv2Family", 2, 4),
        Size("Standard_F8s_v2", "standardFSv2Family", 8, 16),
        Size("Standard_F32s_v2", "standardFSv2Family", 32, 64),
        Size("Standard_F64s_v2", "standardFSv2Family", 64, 128),
        Size("Standard_NC6", "standardNCFamily", 6, 56, 1, retired=True),
        Size("Standard_NC12", "standardNCFamily", 12, 112, 2, retired=True),
        Size("Standard_NC24", "standardNCFamily", 24, 224, 4, retired=True),
        Size("Standard_NC6s_v3", "standardNCSv3Family", 6, 112, 1, retired=True),
        Size("Standard_NC12s_v3", "standardNCSv3Family", 12, 224, 2, retired=True),
        Size("Standard_NC24s_v3", "standardNCSv3Family", 24, 448, 4, retired=True),
        Size("Standard_NC4as_T4_v3", "Standard NCASv3_T4 Family", 4, 28, 1),
        Size("Standard_NC8as_T4_v3", "Standard NCASv3_T4 Family", 8, 56, 1),
        Size("Standard_NC16as_T4_v3", "Standard NCASv3_T4 Family", 16, 110, 1),
        Size("Standard_NC64as_T4_v3", "Standard NCASv3_T4 Family", 64, 440, 4),
        Size("Standard_NC24ads_A100_v4", "StandardNCADSA100v4Family", 24, 220, 1),
        Size("Standard_NC48ads_A100_v4", "StandardNCADSA100v4Family", 48, 440, 2),
        Size("Standard_NC96ads_A100_v4", "StandardNCADSA100v4Family", 96, 880, 4),
        Size("Standard_NC40ads_H100_v5", "StandardNCadsH100v5Family", 40, 320, 1),
        Size("Standard_NC80adis_H100_v5", "StandardNCadsH100v5Family", 80, 640, 2),
        Size("Standard_NV36ads_A10_v5", "StandardNVADSA10v5Family", 36, 440, 1),
        Size("Standard_NV72ads_A10_v5", "StandardNVADSA10v5Family", 72, 880, 2),
    )
}


@dataclass(frozen=True)
class Image:
    """A platform image."""

    publisher: str
    offer: str
    sku: str
    versions: tuple[str, ...]  # oldest first
    plan: bool = False
    disk: int = 30  # GB
    generation: str = "V2"
    architecture: str = "x64"


IMAGES = (
    Image("Canonical", "UbuntuServer", "18.04-LTS", ("18.04.202401161",), generation="V1"),
    Image(
        "Canonical",
        "0001-com-ubuntu-server-focal",
        "20_04-lts",
        ("20.04.202505200", "20.04.202505290"),
        generation="V1",
    ),
    Image("Canonical", "0001-com-ubuntu-server-focal", "20_04-lts-gen2", ("20.04.202505290",)),
    Image("Canonical", "0001-com-ubuntu-server-jammy", "22_04-lts-gen2", ("22.04.202610010",)),
    Image("Canonical", "ubuntu-24_04-lts", "server", ("24.04.202609100", "24.04.202610020")),
    Image(
        "Canonical", "ubuntu-24_04-lts", "server-arm64", ("24.04.202610020",), architecture="Arm64"
    ),
    Image("microsoft-dsvm", "ubuntu-2204", "2204-gen2", ("25.04.17", "25.06.02"), disk=150),
    Image("Debian", "debian-12", "12-gen2", ("0.20261012.2262",)),
    Image("nvidia", "ngc_azure_17_11", "ngc-base-version-24_3-gen2", ("24.3.3",), plan=True),
)


def find_image(publisher: str, offer: str, sku: str, version: str) -> Image | None:
    """Names are the same in any case."""
    for each in IMAGES:
        names = (each.publisher, each.offer, each.sku)
        if [n.lower() for n in names] == [n.lower() for n in (publisher, offer, sku)]:
            return each if version == "latest" or version in each.versions else None
    return None


class Quotas:
    """Cores that a subscription may use, by location. A test may change them."""

    def __init__(self) -> None:
        self._limits: dict[tuple[str, str], int] = {}

    def set(self, name: str, location: str, limit: int) -> None:
        self._limits[name, location] = limit

    def limit(self, name: str, location: str) -> int:
        return self._limits.get((name, location), 350)


def quotas_of(size: Size, spot: bool) -> Iterator[str]:
    """Those that a machine uses. A spot machine has a quota of its own."""
    if spot:
        yield "lowPriorityCores"
    else:
        yield "cores"
        yield size.family
