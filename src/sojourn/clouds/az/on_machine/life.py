"""The life of a machine of Azure: its scale set, and what the metadata service tells."""

from __future__ import annotations

import sys
import time
import urllib.error
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.clouds.az.on_machine import arm, metadata, setting
from sojourn.clouds.az.on_machine.settings import Settings
from sojourn.clouds.vm.on_machine.life import live
from sojourn.clouds.vm.on_machine.trying import MARKING, is_done
from sojourn.core.errors import SojournError
from sojourn.storage.lease import read_reports
from sojourn.storage.store import StoreAddress, open_store

if TYPE_CHECKING:
    from collections.abc import Mapping

_AFTERWARDS = 2.0  # seconds after which a number is looked at again: others may have changed it
_TAKEN = {"Preempt": "spot eviction", "Terminate": "terminated by the scale set"}
_PUT_OFF = Path("/run/sojourn-deadline")  # is there once the deadline was put off, since the boot


class ScaleSet:
    """The scale set, as the machine's identity lets it be used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        found = metadata.about()
        self.machine = str(found["vmId"])
        self._name = str(found["name"])
        self._instance = str(found["resourceId"]).rpartition("/")[2]

    def denied(self) -> str:
        """The setting is written as it is."""
        try:
            now = self._setting()
            self._set(now, now.least, now.end)
        except urllib.error.HTTPError as error:
            denied = error.code == 403
            return "Microsoft.Insights/autoscaleSettings/write" if denied else ""
        except (OSError, ValueError, KeyError) as error:
            say(f"could not ask what this machine may do: {error}")
        return ""

    def notice(self) -> str:
        return next((_TAKEN[kind] for kind, _ in self._events() if kind in _TAKEN), "")

    def warning(self) -> str:
        kinds = [kind for kind, _ in self._events() if kind not in _TAKEN]
        return f"Azure is going to {kinds[0].lower()} this machine" if kinds else ""

    def _events(self) -> list[tuple[str, str]]:
        """Kinds and ids."""
        found = metadata.events(self._name)
        return [(str(each["EventType"]), str(each["EventId"])) for each in found]

    def ask_for_time(self) -> None:
        """Azure gives none beyond what it told."""

    def leave(self, *, for_good: bool, last: bool = False) -> None:
        """Azure may be waiting to take this machine: then it need not wait any longer.

        As many machines are wanted as ranks are left, so the last one needs nothing else.
        """
        if for_good:
            self._want_fewer()
        if not self._approved():
            is_done(
                "leaving the scale set",
                lambda: arm.call(
                    self._settings,
                    "DELETE",
                    f"{self._settings.set}/virtualMachines/{self._instance}"
                    f"?api-version={self._settings.compute}&forceDeletion=true",
                ),
            )

    def _approved(self) -> bool:
        try:
            waiting = [event for kind, event in self._events() if kind in _TAKEN]
            for event in waiting:
                metadata.approve(event)
        except OSError as error:
            say(f"the metadata service does not answer: {error}")
            return False
        return bool(waiting)

    def _want_fewer(self) -> None:
        """Keep one machine less alive, and no more than ranks are left.

        Another machine may write its own number at the same time, and Azure takes the last: so it
        is looked at again.
        """

        def lower() -> None:
            now = self._setting()
            self._set(now, max(0, min(now.least - 1, self._left(now.ranks))), now.end)

        def check() -> None:
            now = self._setting()
            if now.least > self._left(now.ranks):
                self._set(now, self._left(now.ranks), now.end)

        if is_done("wanting fewer machines", lower):
            time.sleep(_AFTERWARDS)
            is_done("wanting fewer machines", check)

    def _left(self, ranks: int) -> int:
        """Ranks that have not ended, as far as the store tells."""
        address = StoreAddress(self._settings.common.store, self._settings.common.store_options)
        try:
            reports = read_reports(open_store(address))
        except SojournError as error:
            say(f"could not read the reports: {error}")
            return ranks
        return ranks - len({report.rank for report in reports if report.outcome.final})

    def _setting(self) -> setting.View:
        return setting.view(arm.call(self._settings, "GET", self._settings.setting))

    def _set(self, now: setting.View, least: int, end: datetime) -> None:
        properties = {"profiles": setting.profiles(now.ranks, least, end)}
        arm.call(self._settings, "PATCH", self._settings.setting, {"properties": properties})

    def mark(self, tags: Mapping[str, str]) -> None:
        if tags:
            body = {"operation": "Merge", "properties": {"tags": {**tags}}}
            is_done(
                "marking the scale set",
                lambda: arm.call(self._settings, "PATCH", self._settings.tags, body),
                MARKING,
            )

    def put_off_deadline(self) -> None:
        if _PUT_OFF.exists():
            return
        deadline = datetime.now(timezone.utc) + timedelta(minutes=self._settings.common.minutes)

        def put_off() -> None:
            now = self._setting()
            self._set(now, now.least, deadline)

        if is_done("postponing the deadline", put_off):
            _PUT_OFF.touch()


if __name__ == "__main__":
    sys.exit(live(Path(sys.argv[1]), "sojourn.clouds.az.on_machine", Settings, ScaleSet))
