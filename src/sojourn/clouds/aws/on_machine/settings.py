"""What a machine of AWS is told."""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.clouds.vm.on_machine import settings

__all__ = ["BootData", "Settings"]


@dataclass(frozen=True)
class Settings(settings.CloudSettings):
    """`autoscaling` and `ec2` are the URLs of these services."""

    region: str
    bucket_region: str
    autoscaling: str
    ec2: str
    tag: str  # by which machines of a task are found
    hook: str  # what holds up their end


class BootData(settings.BootData):
    """What its first script needs of that."""

    bucket_region: str
