"""Names that tell which process something belongs to, and removing what dead ones left.

Machines do not outlive the process that booted them, see `launcher`. Their folders, mounts
and control groups may, if it was killed.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from tests.simcloud.machines import cgroups, kernel

PREFIX = "simulated-machines-"
_GONE_WITHIN = 10.0
_serial = itertools.count()


def new_name() -> str:
    """A name that is unique, and says who made it."""
    return f"{mine()}{next(_serial)}"


def mine() -> str:
    """How the names begin that this process gives."""
    pid = os.getpid()
    return f"{PREFIX}{_pid_namespace()}-{pid}-{_started(pid)}-"


def sweep(parent: Path) -> None:
    """Remove what dead processes left, here and among the control groups."""
    for group in cgroups.find(PREFIX):
        if _owner_is_dead(group.name):
            cgroups.remove(group)
    for folder in parent.glob(f"{PREFIX}*"):
        if _owner_is_dead(folder.name):
            remove_folder(folder)


def remove_folder(folder: Path) -> None:
    """Remove it, with what is mounted on it. Another process may be sweeping as well."""
    give_up = time.monotonic() + _GONE_WITHIN
    while folder.is_mount():
        with suppress(OSError):
            kernel.unmount(str(folder))
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=time.monotonic() < give_up)


def _owner_is_dead(name: str) -> bool:
    namespace, pid, started, _ = name.removeprefix(PREFIX).split("-")
    # Of processes elsewhere nothing can be said.
    return int(namespace) == _pid_namespace() and _started(int(pid)) != int(started)


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def _started(pid: int) -> int:
    """When the process was started, in ticks since the host was; 0 if there is none."""
    with suppress(OSError):
        stat = Path("/proc", str(pid), "stat").read_text()
        state, *fields = stat.rpartition(")")[2].split()
        return 0 if state in "ZX" else int(fields[18])
    return 0
