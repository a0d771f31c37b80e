"""Which machines Azure knows to be gone."""

from __future__ import annotations

from typing import Any

from sojourn.clouds.az.on_machine import arm
from sojourn.clouds.az.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.gone import GoneMachines

__all__ = ["Gone"]

_ASK_EVERY = 1.5  # seconds
_ABSENCES = 2
_OFF = ("PowerState/stopped", "PowerState/deallocated")


class Gone(GoneMachines[Settings]):
    """By the scale set. One that is switched off does nothing any more, as if it were not there."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _ASK_EVERY, _ABSENCES)

    def _look(self) -> dict[str, bool]:
        path = f"{self._settings.set}/virtualMachines?api-version={self._settings.compute}"
        answer = arm.call(self._settings, "GET", f"{path}&$expand=instanceView")
        found: list[Any] = list(answer["value"])
        while answer.get("nextLink"):
            answer = arm.call(self._settings, "GET", _path(str(answer["nextLink"])))
            found += answer["value"]
        return {str(each["properties"]["vmId"]): False for each in found if not _off(each)}


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def _off(machine: Any) -> bool:
    statuses = (machine["properties"].get("instanceView") or {}).get("statuses") or ()
    return any(status.get("code") in _OFF for status in statuses)
