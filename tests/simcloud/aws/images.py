"""The public images of the account's regions: several dates, so that the newest is not the first.

Their names and owners are like those of the real ones, their ids differ between regions.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from typing import Any
from unittest import mock

from moto.ec2.models.amis import Ami, AmiBackend

CANONICAL = "099720109477"
USER = "ubuntu"  # who logs in to machines of them
AMAZON = "898082745236"  # who publishes the images for deep learning

_ARCHITECTURES = {"amd64": "x86_64", "arm64": "arm64"}
_UBUNTU = (
    ("hvm-ssd", "jammy-22.04", ("20240207", "20250305", "20240701")),
    ("hvm-ssd-gp3", "noble-24.04", ("20250305", "20240423", "20240927")),
)
_DEEP_LEARNING = {
    "amd64": "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu {}) {}",
    "arm64": "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu {}) {}",
}


class Image(Ami):  # type: ignore[misc, unused-ignore]
    """An image with a root disk of a certain size."""

    def __init__(self, backend: Any, size: int, **attributes: Any) -> None:
        super().__init__(backend, **attributes)
        self.size = size
        self.ebs_snapshot.volume.size = size

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        ebs = {
            "SnapshotId": self.ebs_snapshot.id,
            "VolumeSize": self.size,
            "DeleteOnTermination": True,
            "VolumeType": "gp3",
            "Encrypted": False,
        }
        return [{"DeviceName": self.root_device_name, "Ebs": ebs}]


def instead_of_motos() -> AbstractContextManager[Any]:
    """Have regions start with these images. moto has many others, none that a task would use."""
    return mock.patch.object(AmiBackend, "_load_amis", _publish_all)


def _publish_all(backend: Any) -> None:
    for kind, release, dates in _UBUNTU:
        for architecture in _ARCHITECTURES:
            for date in dates:
                name = f"ubuntu/images/{kind}/ubuntu-{release}-{architecture}-server-{date}"
                _publish(backend, name, architecture, date, 8, CANONICAL, None)
    for architecture, form in _DEEP_LEARNING.items():
        for release in ("22.04", "24.04"):
            for date in ("20240815", "20250228", "20241115"):
                name = form.format(release, date)
                _publish(backend, name, architecture, date, 35, AMAZON, "amazon")


def _publish(
    backend: Any, name: str, architecture: str, date: str, size: int, owner: str, alias: str | None
) -> None:
    digest = hashlib.sha256(f"{backend.region_name} {name}".encode()).hexdigest()
    image = Image(
        backend,
        size,
        ami_id=f"ami-0{digest[:16]}",
        name=name,
        description=name,
        owner_id=owner,
        owner_alias=alias,
        public=True,
        virtualization_type="hvm",
        architecture=_ARCHITECTURES[architecture],
        creation_date=datetime.strptime(date, "%Y%m%d").replace(tzinfo=timezone.utc),
        image_location=f"{alias or owner}/{name}",
        hypervisor="xen",
        root_device_type="ebs",
        root_device_name="/dev/sda1",
        region_name=f"{backend.region_name}a",
    )
    backend.amis[image.id] = image
