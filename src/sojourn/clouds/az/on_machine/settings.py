"""What a machine of Azure is told."""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.clouds.vm.on_machine import settings

__all__ = ["BootData", "Settings"]


@dataclass(frozen=True)
class Settings(settings.CloudSettings):
    """`setting` and `tags` are the paths of calls, with the version of the API."""

    identity: str  # the id of the machine's
    ranks: int
    set: str  # the id of the scale set
    setting: str
    tags: str
    compute: str  # the version of that API


class BootData(settings.BootData):
    """What its first script needs of that."""

    identity: str
