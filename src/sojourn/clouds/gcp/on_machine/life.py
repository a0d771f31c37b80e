"""The life of a Compute Engine machine: its managed group, and what the metadata server tells."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.agent.background import say
from sojourn.clouds.gcp.on_machine import groupmarks, metadata
from sojourn.clouds.gcp.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.life import live
from sojourn.clouds.vm.on_machine.trying import MARKING, is_done

if TYPE_CHECKING:
    from collections.abc import Mapping

_WITHIN = 30.0


class ManagedGroup:
    """The group, as the rights of the machine's account let it be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.machine = metadata.get("id")
        if not self.machine:
            raise OSError("the metadata server returned no instance ID")

    def denied(self) -> str:
        """A change of nothing needs the right to change the group."""
        try:
            self._call("PATCH", "", groupmarks.patch_of({}))
            return ""
        except urllib.error.HTTPError as error:
            return "compute.instanceGroupManagers.update" if error.code == 403 else ""
        except (OSError, ValueError) as error:
            say(f"could not ask what this machine may do: {error}")
            return ""

    def notice(self) -> str:
        return "preempted" if self._is_preempted() else ""

    def warning(self) -> str:
        event = metadata.get("maintenance-event")
        if event.startswith("TERMINATE"):
            return "Google Cloud will stop this machine for maintenance within an hour"
        return ""

    def ask_for_time(self) -> None:
        """Google gives no more."""

    def leave(self, *, for_good: bool, last: bool = False) -> None:
        """The group replaces a machine that is preempted, without being asked."""
        if last and is_done("resize", lambda: self._call("POST", "/resize?size=0")):
            return  # the group deletes this machine as well
        if for_good:
            self._about_me("deleteInstances")
        elif not self._is_going():
            self._about_me("recreateInstances", 1)  # if the group ends it already, it is refused

    def _is_going(self) -> bool:
        try:
            return self._is_preempted()
        except OSError as error:
            say(f"the metadata server does not answer: {error}")
            return False

    def _is_preempted(self) -> bool:
        return metadata.get("preempted") == "TRUE"

    def mark(self, tags: Mapping[str, str]) -> None:
        told = {key.replace(":", "-"): value for key, value in tags.items()}

        def mark() -> None:
            group = self._call("GET", "")
            self._call("PATCH", "", groupmarks.patch_of(told, group.get("fingerprint")))

        if told:
            is_done("marking the group", mark, MARKING)

    def put_off_deadline(self) -> None:
        """Google counts the time of each machine from its start."""

    def _about_me(self, action: str, *tries: int) -> None:
        name = f"zones/{self._settings.zone}/instances/{metadata.get('name')}"
        is_done(action, lambda: self._call("POST", f"/{action}", {"instances": [name]}), *tries)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """What was answered. Raises OSError or ValueError."""
        given = b"" if body is None else json.dumps(body).encode()
        request = metadata.authorized(method, self._settings.group + path, given)
        with urllib.request.urlopen(request, timeout=_WITHIN) as answer:
            return json.loads(answer.read() or b"{}")


if __name__ == "__main__":
    sys.exit(live(Path(sys.argv[1]), "sojourn.clouds.gcp.on_machine", Settings, ManagedGroup))
