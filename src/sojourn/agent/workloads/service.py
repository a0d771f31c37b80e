"""A machine that stays when its script has ended: until somebody takes it away, or it is idle."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from sojourn.agent.shared import write_program
from sojourn.agent.workloads.workload import End, Workload
from sojourn.core.durations import format_seconds
from sojourn.core.report import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sojourn.agent.process import RunningScript
    from sojourn.agent.workloads.workload import Host

__all__ = ["Idle", "Service", "staying"]

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


class Service(Workload):
    """Runs the script of a task that stays, then waits; ends when it is idle for too long."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._idle: Idle | None = None

    def program(self) -> str:
        """A script that runs the user's, and then does nothing."""
        startup = self._host.folder / "startup"
        write_program(startup, self._host.task.script, 0o755)  # what runs it may be another user
        return staying(startup)

    def start(self, script: RunningScript) -> None:
        """Begin to watch the processors."""
        limit = self._host.task.idle_timeout
        if limit:
            self._idle = Idle(limit, script.used)

    def end(self) -> End | None:
        """As good an end as any, for what has none of its own."""
        if self._idle and self._idle.over():
            return End(Outcome.SUCCEEDED, self._idle.reason, 0)
        return None

    @property
    def look_within(self) -> float:
        """Seconds until it may be worth asking again."""
        return self._idle.look_within if self._idle else super().look_within


def staying(startup: Path) -> str:
    """The script that runs another one, and then does nothing."""
    return _SCRIPT.format(startup=shlex.quote(str(startup)), forever=_FOREVER)


class Idle:
    """How long a machine has had nothing to do. `used`: its processors' seconds so far."""

    def __init__(self, limit: float, used: Callable[[], float]) -> None:
        self._limit = limit
        self._used = used
        self._since = self._looked = time.monotonic()
        self._seconds = used()

    def over(self) -> bool:
        """Whether it was for too long."""
        now = time.monotonic()
        if now - self._looked >= self.look_within:
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
        return min(_EVERY, self._limit / 2)
