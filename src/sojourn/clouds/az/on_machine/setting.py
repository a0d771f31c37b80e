"""The autoscale setting of a task: how many machines Azure keeps alive, and until when.

A profile with a fixed date has the number as its minimum: what is lost comes again, and nothing is
ended that works. After its date, the other profile ends all. Machines change only the profiles;
whether the setting is enabled at all, the laptop decides: so no machine undoes a stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

__all__ = ["View", "profiles", "view"]

_RUNNING = "running"
_OVER = "over"
_EARLIER = timedelta(days=1)  # when it begins: no clock is so wrong


@dataclass(frozen=True)
class View:
    """What a setting says. `ranks`: the most machines; `least`: those that it keeps alive."""

    ranks: int
    least: int
    end: datetime
    enabled: bool

    def wanted(self, now: datetime) -> int:
        """How many machines there are to be."""
        return self.least if self.enabled and now < self.end else 0


def profiles(ranks: int, least: int, end: datetime) -> list[dict[str, Any]]:
    """As Azure wants them; `end` is in UTC."""
    start = min(datetime.now(timezone.utc), end) - _EARLIER
    date = {"timeZone": "UTC", "start": _text(start), "end": _text(end)}
    return [
        {"name": _RUNNING, "capacity": _limits(least, ranks), "rules": [], "fixedDate": date},
        {"name": _OVER, "capacity": _limits(0, 0), "rules": []},
    ]


def _limits(least: int, most: int) -> dict[str, str]:
    return {"minimum": str(least), "default": str(least), "maximum": str(most)}


def view(content: Any) -> View:
    """What the content of a setting says. Somebody else's: raises ValueError.

    It has the two profiles that we write, and no other: a script could add some that start
    machines at other times.
    """
    properties = content["properties"]
    try:
        found = properties["profiles"]
        dated = [each for each in found if each.get("fixedDate")]
        others = [each["capacity"] for each in found if not each.get("fixedDate")]
        if len(dated) != 1 or any(int(limits["maximum"]) for limits in others):
            raise ValueError("the autoscale setting has no profile with a date, or further ones")
        [running] = dated
        end = _moment(str(running["fixedDate"]["end"]))
        least, most = (int(running["capacity"][name]) for name in ("minimum", "maximum"))
    except (KeyError, TypeError) as error:
        raise ValueError("the autoscale setting is incomplete") from error
    return View(most, least, end, bool(properties.get("enabled")))


def _text(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
