"""Which machines are gone: a lock on the claim is let go when its holder dies, however it did."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Locks"]

# File systems whose locks are seen by all who have them; of disks, that is one node.
_KNOWN = (
    *("btrfs", "ceph", "cifs", "ext2", "ext3", "ext4", "f2fs", "gfs2", "lustre", "nfs", "nfs4"),
    *("ocfs2", "overlay", "smb3", "tmpfs", "xfs", "zfs"),
)
# And the options with which they are not.
_LOCAL = ("local_lock=all", "local_lock=flock", "localflock", "noflock", "nobrl", "nolock")
_TAKEN_WITHIN = 2.0  # seconds; whoever looks whether this machine is dead holds it for a moment


class Locks:
    """The locks of a task's machines; `machine in locks` tells that one is dead."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = -1
        self._machine = ""
        self._trusted = False

    def take(self, machine: str) -> None:
        """Hold one for as long as this process lives."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._machine = machine
        self._own = os.open(self._folder / machine, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._trusted = _are_shared(self._folder) and self._taken()

    def _taken(self) -> bool:
        give_up = time.monotonic() + _TAKEN_WITHIN
        while True:
            try:
                fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up:
                    return False
                time.sleep(0.01)
            except OSError:
                return False
            else:
                return True

    def __contains__(self, machine: object) -> bool:
        if not self._trusted or not isinstance(machine, str) or "/" in machine:
            return False
        if machine == self._machine:  # to look would let it go, on NFS
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


def _are_shared(folder: Path) -> bool:
    """Whether locks in a folder are seen by everybody who has it."""
    best, kind, options = "", "", ""
    path = str(folder.resolve())
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            point, found, how = line.split()[1:4]
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind, options = point, found, how
    return kind in _KNOWN and not set(options.split(",")) & set(_LOCAL)
