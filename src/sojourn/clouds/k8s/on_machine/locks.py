"""Which machines are gone: a lock on the claim is let go when its holder dies, however it did."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Locks"]

# File systems whose locks are not seen by other nodes, or not known to be.
_LOCAL_LOCKS = ("fuse", "9p", "virtiofs")


class Locks:
    """The locks of a task's machines; `machine in locks` tells that one is dead."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = -1
        self._trusted = False

    def take(self, machine: str) -> None:
        """Hold one for as long as this process lives."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._trusted = not _file_system(self._folder).startswith(_LOCAL_LOCKS)
        self._own = os.open(self._folder / machine, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with suppress(OSError):
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def __contains__(self, machine: object) -> bool:
        if not self._trusted or not isinstance(machine, str) or "/" in machine:
            return False
        try:
            descriptor = os.open(self._folder / machine, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True


def _file_system(folder: Path) -> str:
    """The kind of file system that a folder is on."""
    best, kind = "", ""
    path = str(folder.resolve())
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            point, found = line.split()[1:3]
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, found
    return kind
