"""A machine that stays when its script has ended: until somebody takes it away, or it is idle."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from sojourn.core.durations import format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Idle", "staying"]

_EVERY = 15.0  # seconds between looks
_BUSY = 0.03  # of a processor: what waits for somebody uses less
_FOREVER = 2**31 - 1  # seconds
_SCRIPT = """\
#!/bin/sh
{startup} "$@"
code=$?
[ "$code" = 0 ] || echo "sojourn: the script ended with exit code $code; the machine stays"
exec sleep {forever}
"""


def staying(startup: Path) -> str:
    """The script that runs another one, and then does nothing."""
    return _SCRIPT.format(startup=shlex.quote(str(startup)), forever=_FOREVER)


class Idle:
    """How long a machine has had nothing to do. `used`: its processors' seconds so far."""

    def __init__(self, limit: float, used: Callable[[], float]) -> None:
        self._limit = limit
        self._used = used
        self._since = self._looked = time.monotonic()
        self._seconds = used() if limit else 0.0

    def over(self) -> bool:
        """Whether it was for too long."""
        if not self._limit:
            return False
        now = time.monotonic()
        if now - self._looked >= self._pause:
            seconds = self._used()
            if seconds - self._seconds > _BUSY * (now - self._looked):
                self._since = now
            self._looked, self._seconds = now, seconds
        return now - self._since >= self._limit

    @property
    def reason(self) -> str:
        """Why it is over."""
        return f"idle for {format_seconds(int(self._limit))}"

    @property
    def look_within(self) -> float:
        """Seconds until it may be worth asking again."""
        return self._pause if self._limit else float("inf")

    @property
    def _pause(self) -> float:
        return min(_EVERY, self._limit / 2)
