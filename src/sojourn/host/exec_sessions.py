"""Commands that somebody runs on a machine from outside: they end with it, at the latest.

Neither the agent nor the supervisor is their parent, so each is written down in the folder of the
machine: a file with its pid as the name. The pid is that of a session, too.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.config import GUESTS
from sojourn.agent.process import below
from sojourn.host.orphans import began, kill_strays, lives

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.host.folders import TaskFolders

__all__ = ["add_guest", "kill_guests", "kill_session"]

_ROUNDS = 100


def add_guest(machine: Path, pid: int) -> None:
    """Write a command down; a machine whose folder is gone raises FileNotFoundError."""
    folder = machine / GUESTS
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / str(pid)).write_text(began(pid))


def kill_guests(task: TaskFolders, machine: Path, adopter: int = 0) -> None:
    """Kill the commands of a machine, and all that they have left behind."""
    guests = _guests(machine)
    if not guests:
        return  # looking at all processes takes a while
    for pid, beginning in guests.items():
        if began(pid) == beginning:  # else it has ended, and its pid may be somebody else's
            kill_session(pid)
    kill_strays(task, adopter, machine.name, guests)


def _guests(machine: Path) -> dict[int, str]:
    guests: dict[int, str] = {}
    with suppress(OSError):
        for name in os.listdir(machine / GUESTS):
            with suppress(OSError, ValueError):
                guests[int(name)] = (machine / GUESTS / name).read_text()
    return guests


def kill_session(leader: int) -> None:
    """Kill a process that has a session of its own, and all below it; wait until they are gone."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getsid(leader) != leader:
            return
        for _ in range(_ROUNDS):
            victims = below(leader)
            if not victims and not lives(leader):
                return
            os.killpg(leader, signal.SIGKILL)
            for pid in victims:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
