"""Times for people: ages as `list` shows them, and points in time as options take them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from sojourn.core.clock import moment_of, seconds_between
from sojourn.core.durations import parse_seconds
from sojourn.core.errors import InvalidInput

__all__ = ["age", "moment", "seconds_between"]


def age(since: str, now: datetime | None = None) -> str:
    """How long ago that is: 45s, 2m10s, 35m, 5h20m, 30h, 3d4h, 20d. Empty: not known."""
    begin = moment_of(since)
    if begin is None:
        return ""
    seconds = max(0, int(((now or datetime.now(timezone.utc)) - begin).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 2:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if hours < 3:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _two(days, "d", hours % 24, "h") if days < 8 else f"{days}d"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large}{unit}{small}{smaller}" if small else f"{large}{unit}"


def moment(path: str, text: str, now: datetime | None = None) -> datetime:
    """A point in time: so long ago, such as 10m or 1h30m, or a date and time (UTC)."""
    try:
        ago = timedelta(seconds=parse_seconds(text))
        return (now or datetime.now(timezone.utc)) - ago
    except OverflowError:
        return datetime.min.replace(tzinfo=timezone.utc)
    except ValueError:
        found = moment_of(text.strip())
    if found is None:
        raise InvalidInput(
            path,
            f"must be a duration such as 10m or 1h30m, or a time such as "
            f"2026-01-31T12:00:00Z, got {text!r}",
        )
    return found
