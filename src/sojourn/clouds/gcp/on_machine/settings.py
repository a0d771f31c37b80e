"""What a machine of Google Cloud is told."""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.clouds.vm.on_machine.settings import CloudSettings

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings(CloudSettings):
    """`group` is the URL of its group."""

    zone: str
    group: str
