"""Which machines the group knows to be gone."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING

from sojourn.clouds.gcp.on_machine import metadata
from sojourn.clouds.gcp.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.gone import GoneMachines

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Gone"]

_ASK_EVERY = 0.5  # seconds
# Answers in a row that know this machine, but not the other one. Who holds a rank has a number
# since before it booted: an answer that knows a later machine is not too old to know it.
_ABSENCES = 2
_WITHIN = 10.0
_ENDED = ("STOPPED", "TERMINATED", "SUSPENDED")


class Gone(GoneMachines[Settings]):
    """By the group. Machines are known by their numbers: one that is replaced keeps its name."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _ASK_EVERY, _ABSENCES)
        self._me = ""

    def _look(self) -> dict[str, bool]:
        return {machine: state in _ENDED for machine, state in self._states().items()}

    def _is_complete(self, known: Mapping[str, bool]) -> bool:
        return self._own() in known

    def _own(self) -> str:
        if not self._me:
            self._me = metadata.get("id")
        return self._me

    def _states(self) -> dict[str, str]:
        """Of the group's machines, by their numbers."""
        url = f"{self._settings.group}/listManagedInstances"
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
