"""The clock of a simulated cloud, which a test may put forward."""

from __future__ import annotations

import time
from datetime import datetime, timezone


class Clock:
    """Real time and an offset. All that a simulated cloud does by itself goes by it."""

    def __init__(self) -> None:
        self._offset = 0.0

    def now(self) -> float:
        return time.time() + self._offset

    def today(self) -> datetime:
        return datetime.fromtimestamp(self.now(), timezone.utc)

    def advance(self, seconds: float) -> None:
        assert seconds >= 0, "time does not go back"
        self._offset += seconds


def stamp(moment: datetime) -> str:
    """A time in whole seconds, as clouds write it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
