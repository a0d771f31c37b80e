"""Which machines the group knows to be gone. A machine that is only cut off is not."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any

from sojourn.clouds.gcp.on_machine import metadata

__all__ = ["Gone"]

_ASK_EVERY = 0.5  # seconds; an agent that waits looks several times a second
# Answers in a row that know this machine, but not the other one. Who holds a rank has a number
# since before it booted: an answer that knows a later machine is not too old to know it.
_ABSENCES = 2
_WITHIN = 10.0
_ENDED = ("STOPPED", "TERMINATED", "SUSPENDED")


class Gone:
    """`machine in gone` asks the group. Raises OSError if it does not tell.

    Machines are known by their numbers: one that is replaced keeps its name.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._gone: set[object] = set()
        self._absent: dict[object, int] = {}
        self._asked: dict[object, float] = {}
        self._me = ""

    def __contains__(self, machine: object) -> bool:
        if machine in self._gone:
            return True
        now = time.monotonic()
        if now - self._asked.get(machine, -_ASK_EVERY) < _ASK_EVERY:
            return False
        self._asked[machine] = now
        states = self._states()
        if states.get(str(machine)) in _ENDED:
            self._gone.add(machine)
        elif str(machine) in states:
            self._absent[machine] = 0
        elif self._own() in states:
            self._absent[machine] = self._absent.get(machine, 0) + 1
            if self._absent[machine] >= _ABSENCES:
                self._gone.add(machine)
        return machine in self._gone

    def _own(self) -> str:
        if not self._me:
            self._me = metadata.get("id")
        return self._me

    def _states(self) -> dict[str, str]:
        """Of the group's machines, by their numbers."""
        url = f"{self._settings['group']}/listManagedInstances"
        with urllib.request.urlopen(
            metadata.authorized("POST", url, b"{}"), timeout=_WITHIN
        ) as answer:
            text: bytes = answer.read()
        try:
            found = json.loads(text or b"{}").get("managedInstances", [])
            return {
                str(each["id"]): each.get("instanceStatus", "") for each in found if "id" in each
            }
        except (ValueError, AttributeError, TypeError) as error:
            raise OSError(f"the group answered strangely: {error}") from error
