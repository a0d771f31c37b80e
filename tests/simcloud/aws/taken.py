"""Images that the account takes of its own instances, with what is on the disks of their machines.

The public images do not belong here, see `images`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from moto.ec2.utils import random_ami_id

from tests.simcloud.aws import backends, codec
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.fleet import Fleet
from tests.simcloud.aws.images import Image
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request

_NAME = re.compile(r"[A-Za-z0-9()\[\] ./\-'@_]{3,128}")


class TakenImage(Image):  # type: ignore[misc, unused-ignore]
    """One that is pending for a while; `disk` has its files, if there are machines."""

    def __init__(
        self, backend: Any, size: int, clock: Clock, ready: float, disk: Path | None, **more: Any
    ) -> None:
        self._clock = clock
        self._ready = clock.now() + ready
        self.disk = disk
        super().__init__(backend, size, **more)

    @property
    def state(self) -> str:
        return "pending" if self._clock.now() < self._ready else "available"

    @state.setter
    def state(self, _: str) -> None:
        """moto says so of all images."""


class Taking:
    """Answers `CreateImage`; the lock is held by who calls this."""

    def __init__(self, fleet: Fleet, clock: Clock, timing: Timing) -> None:
        self._fleet = fleet
        self._clock = clock
        self._timing = timing

    def answer(self, call: Call, request: Request) -> Answer:
        asked = codec.parameters("ec2", call.operation, request)
        if not asked.get("NoReboot"):
            raise NotImplementedError("CreateImage with a reboot is not known here")
        backend = backends.ec2(call.region)
        name, instance = asked["Name"], self._fleet.find(asked["InstanceId"])
        if instance is None or instance.state not in ("running", "stopped"):
            raise AWSError(
                "InvalidInstanceID.NotFound", f"The instance ID '{asked['InstanceId']}' is invalid"
            )
        if not _NAME.fullmatch(name):
            raise AWSError("InvalidAMIName.Malformed", f"AMI name {name} is invalid")
        ours = [image for image in backend.amis.values() if image.owner_id == backends.ACCOUNT]
        for other in ours:
            if other.name == name:
                message = f"AMI name {name} is already in use by AMI {other.id}"
                raise AWSError("InvalidAMIName.Duplicate", message)
        base = backend.amis[instance.record.image_id]
        [device] = instance.record.block_device_mapping.values()
        image = TakenImage(
            backend,
            backend.volumes[device.volume_id].size,
            self._clock,
            self._timing.image_ready,
            self._fleet.capture(instance),
            ami_id=random_ami_id(),
            name=name,
            description=asked.get("Description", ""),
            owner_id=backends.ACCOUNT,
            virtualization_type="hvm",
            architecture=base.architecture,
            image_location=f"{backends.ACCOUNT}/{name}",
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name=base.root_device_name,
            region_name=f"{call.region}a",
        )
        for given in asked.get("TagSpecifications", []):
            tagged = {"image": image, "snapshot": image.ebs_snapshot}[given["ResourceType"]]
            tagged.add_tags({tag["Key"]: tag["Value"] for tag in given["Tags"]})
        backend.amis[image.id] = image
        return codec.result("ec2", call.operation, {"ImageId": image.id})
