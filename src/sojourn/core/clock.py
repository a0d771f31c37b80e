"""The time, as it is written everywhere."""

from __future__ import annotations

from datetime import datetime, timezone

__all__ = ["utc_now"]


def utc_now() -> str:
    """Now, in UTC: 2026-01-31T23:59:59.123456Z."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
