"""The time, as it is written everywhere."""

from __future__ import annotations

from datetime import datetime, timezone

__all__ = ["utc", "utc_now"]


def utc_now() -> str:
    """Now, in UTC: 2026-01-31T23:59:59.123456Z."""
    return utc(datetime.now(timezone.utc))


def utc(time: datetime) -> str:
    """A time, in UTC; one without a zone is a local one."""
    there = time.astimezone(timezone.utc)
    return there.isoformat(timespec="microseconds").replace("+00:00", "Z")
