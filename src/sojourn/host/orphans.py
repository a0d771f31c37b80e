"""Processes of a task's machines that lost their supervisor, and only these.

Only Linux tells what is needed to know them; elsewhere none are found.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.agent.process import kill_with_group
from sojourn.host import without_proc

if TYPE_CHECKING:
    from collections.abc import Collection

    from sojourn.host.folders import TaskFolders

__all__ = [
    "MARK",
    "agents",
    "began",
    "environment",
    "is_agent",
    "is_supervisor",
    "is_suspended",
    "kill_strays",
    "lives",
    "strays",
]

MARK = "SOJOURN_MACHINE"  # in the environment of all that a machine starts
_PROC = "/proc"
_WITHIN = 10.0  # seconds
_SESSION, _BEGAN = 3, 19  # where they are in what `_stat` gives
# Who adopts orphans, beside process 1: systemd has one for each user, WSL one for each session.
_ADOPTERS = frozenset({b"systemd", b"init"})


@dataclass(frozen=True)
class _Process:
    """What is known of a process: its parent, and the machine in its environment."""

    parent: int
    machine: str


def is_agent(pid: int, machine: str) -> bool:
    """Whether this process still is the agent of a machine: pids are used again."""
    return _has_argument(pid, f"/{machine}/agent.json\0".encode())


def is_suspended(pid: int) -> bool:
    """Whether a process was stopped by SIGSTOP or a debugger."""
    with suppress(OSError):
        if not _has_proc():
            return without_proc.is_suspended(pid)
        return _stat(pid)[0] in (b"T", b"t")
    return False


def environment(pid: int) -> dict[str, str] | None:
    """The variables that a process was started with; None where the system does not tell."""
    with suppress(OSError):
        if not _has_proc():
            return without_proc.environment(pid)
        pairs = [os.fsdecode(pair).partition("=") for pair in _read(pid, "environ").split(b"\0")]
        return {name: value for name, _, value in pairs if name}
    return None


def began(pid: int) -> str:
    """When a process began, in words of its computer: pids are used again. Not known: empty."""
    with suppress(OSError, IndexError):
        if not _has_proc():
            return without_proc.began(pid)
        return _stat(pid)[_BEGAN].decode()
    return ""


def lives(pid: int) -> bool:
    """Whether a process has not ended; one that nobody has buried yet has."""
    with suppress(OSError):
        return _stat(pid)[0] != b"Z" if _has_proc() else without_proc.lives(pid)
    return False


def is_supervisor(pid: int, task: TaskFolders) -> bool:
    """Whether this process still is the supervisor of a task, whose folder has its name."""
    return _has_argument(pid, f"/{task.root.name}\0".encode())


def _has_argument(pid: int, argument: bytes) -> bool:
    try:
        words = _read(pid, "cmdline") if _has_proc() else without_proc.command(pid)
    except (FileNotFoundError, PermissionError, ProcessLookupError):  # or it is another user's
        return False
    return argument in words


def _has_proc() -> bool:
    return os.path.exists(_PROC)


def strays(
    task: TaskFolders, adopter: int = 0, machine: str = "", sessions: Collection[int] = ()
) -> list[int]:
    """All processes of machines of a task, also those that lost their supervisor.

    A variable is easily copied. So it has to be one of this user's processes, and the first of its
    ancestors that has the variable as well must be an agent, a child of this task's supervisor, in
    one of `sessions`, or have lost its parent. What a stranger started is a stranger's, whatever
    its environment says. `adopter`: who adopts orphans here, if that is known. `machine`: only
    those of this one.
    """
    found = _all_marked(task)
    return [
        pid
        for pid, process in found.items()
        if machine in ("", process.machine) and _is_ours(pid, found, task, adopter, sessions)
    ]


def _all_marked(task: TaskFolders) -> dict[int, _Process]:
    start = f"{MARK}={task.machine_prefix}".encode()
    others = (pid for pid in _pids() if pid != os.getpid())
    return {pid: process for pid in others if (process := _marked(pid, start))}


def _marked(pid: int, start: bytes) -> _Process | None:
    with suppress(OSError, ValueError, IndexError):
        if os.stat(f"{_PROC}/{pid}").st_uid != os.geteuid():
            return None
        for variable in _read(pid, "environ").split(b"\0"):
            if variable.startswith(start):
                machine = os.fsdecode(variable.partition(b"=")[2])
                return _Process(int(_stat(pid)[1]), machine)
    return None


def _is_ours(
    pid: int,
    found: dict[int, _Process],
    task: TaskFolders,
    adopter: int,
    sessions: Collection[int],
) -> bool:
    first = pid
    for _ in found:  # pids are used again while they are read: there may be rings
        if found[first].parent not in found:
            break
        first = found[first].parent
    parent = found[first].parent
    if parent in (1, adopter) or is_agent(first, found[first].machine):
        return True
    with suppress(OSError, IndexError):  # else it ended just now: the next look tells
        if int(_stat(first)[_SESSION]) in sessions:
            return True
        return _read(parent, "comm").strip() in _ADOPTERS or is_supervisor(parent, task)
    return False


def agents(task: TaskFolders) -> list[int]:
    """Those of them that are agents: they end by themselves once they have stored their work."""
    return [pid for pid, process in _all_marked(task).items() if is_agent(pid, process.machine)]


def kill_strays(
    task: TaskFolders, adopter: int = 0, machine: str = "", sessions: Collection[int] = ()
) -> None:
    """Kill them all, also those that are started meanwhile."""
    give_up = time.monotonic() + _WITHIN
    while victims := strays(task, adopter, machine, sessions):
        for pid in victims:
            kill_with_group(pid)
        if time.monotonic() > give_up:
            return
        time.sleep(0.01)


def _pids() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
    return []


def _stat(pid: int) -> list[bytes]:
    """State, parent and more; the program's name before it, in parentheses, may have anything."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:
        return file.read()
