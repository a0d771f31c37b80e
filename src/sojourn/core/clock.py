"""The time, as it is written everywhere."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["moment_of", "seconds_between", "utc", "utc_now"]


def utc_now() -> str:
    """Now, in UTC: 2026-01-31T23:59:59.123456Z."""
    return utc(datetime.now(timezone.utc))


def utc(time: datetime) -> str:
    """A time, in UTC; one without a zone is a local one."""
    there = time.astimezone(timezone.utc)
    return there.isoformat(timespec="microseconds").replace("+00:00", "Z")


def moment_of(text: str) -> datetime | None:
    """A time that was written; without a zone it is UTC. None: it is no time."""
    try:
        time = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def seconds_between(begins: Iterable[str], ends: Iterable[str]) -> int | None:
    """From the first to the last of these times; None if either is not known."""
    first = min(filter(None, map(moment_of, begins)), default=None)
    last = max(filter(None, map(moment_of, ends)), default=None)
    return max(0, round((last - first).total_seconds())) if first and last else None
