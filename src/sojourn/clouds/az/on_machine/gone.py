"""Which machines Azure knows to be gone. A machine that is only cut off is not."""

from __future__ import annotations

import time
from typing import Any

from sojourn.clouds.az.on_machine import arm

__all__ = ["Gone"]

_ASK_EVERY = 1.5  # seconds; an agent that waits looks several times a second
_ABSENCES = 2  # answers in a row: one that was just launched may not be known everywhere yet
_OFF = ("PowerState/stopped", "PowerState/deallocated")


class Gone:
    """`machine in gone` asks Azure. Raises OSError if it does not tell."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._gone: set[object] = set()
        self._asked = -_ASK_EVERY
        self._alive: set[str] = set()
        self._absent: dict[object, int] = {}
        self._answers = 0

    def __contains__(self, machine: object) -> bool:
        if machine in self._gone:
            return True
        self._ask()
        self._absent.setdefault(machine, self._answers - 1)  # this answer is the first
        if machine in self._alive:
            self._absent[machine] = self._answers
        if self._answers - self._absent[machine] < _ABSENCES:
            return False
        self._gone.add(machine)
        return True

    def _ask(self) -> None:
        """All machines of the scale set at once."""
        now = time.monotonic()
        if now - self._asked < _ASK_EVERY:
            return
        self._asked = now
        path = f"{self._settings['set']}/virtualMachines?api-version={self._settings['compute']}"
        answer = arm.call(self._settings, "GET", f"{path}&$expand=instanceView")
        found: list[Any] = list(answer["value"])
        while answer.get("nextLink"):
            answer = arm.call(self._settings, "GET", _path(str(answer["nextLink"])))
            found += answer["value"]
        self._alive = {str(each["properties"]["vmId"]) for each in found if not _off(each)}
        self._answers += 1


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def _off(machine: Any) -> bool:
    statuses = (machine["properties"].get("instanceView") or {}).get("statuses") or ()
    return any(status.get("code") in _OFF for status in statuses)
