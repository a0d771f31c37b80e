"""A script on a machine that is there for it alone: what runs beside it belongs to it, too."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from sojourn.agent.process import Script

__all__ = ["MachineScript", "is_visit"]

_STAT = Path("/proc/stat")


class MachineScript(Script):
    """Anybody who is on the machine by SSH keeps it from being idle."""

    _visits = 0.0
    _looked = float("inf")

    def used(self) -> float:
        user, nice, system = map(int, _STAT.read_text().split()[1:4])
        now = time.monotonic()
        if _visited():
            self._visits += max(0.0, now - self._looked)
        self._looked = now
        return (user + nice + system) / os.sysconf("SC_CLK_TCK") + self._visits


def _visited() -> bool:
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdecimal() and is_visit(Path(f"/proc/{name}/cmdline").read_bytes()):
                return True
    return False


def is_visit(command: bytes) -> bool:
    """Whether a process is one of OpenSSH for somebody who has logged in."""
    return command.startswith((b"sshd: ", b"sshd-session: ")) and b"@" in command
