"""Where a process lives: its pid means nothing on another computer or in another container."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "Supervised"]

_NOBODY = "-"  # instead of a pid
_UNKNOWN = "?"  # what a system does not tell


@dataclass(frozen=True)
class Place:
    """A computer by name, which of its boots it is, and which pids are seen; only Linux has all."""

    host: str
    boot: str
    pids: str

    @classmethod
    def here(cls) -> Place:
        boot = pids = _UNKNOWN
        with suppress(OSError):
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        with suppress(OSError):
            pids = os.readlink("/proc/self/ns/pid")
        return cls(os.uname().nodename or _UNKNOWN, boot or _UNKNOWN, pids)

    def is_here(self) -> bool:
        """Whether pids from there are ours. The name of a computer may change while it runs."""
        here = Place.here()
        if self.boot == _UNKNOWN:
            return self.host == here.host
        return (self.boot, self.pids) == (here.boot, here.pids)

    def tells_locks(self) -> bool:
        """Whether a lock that nobody holds proves that nobody there lives.

        It does on one kernel, containers included, and after a reboot. Between computers it
        depends on the file system.
        """
        here = Place.here()
        return self.host == here.host or (self.boot == here.boot != _UNKNOWN)


@dataclass(frozen=True)
class Supervised:
    """What a supervisor's lock says: who holds it, or held it when it was killed."""

    pid: int | None = None
    place: Place | None = None  # None: nobody, or written by a version that did not tell

    @classmethod
    def parse(cls, text: str) -> Supervised:
        pid, *where = text.split() or [_NOBODY]
        place = Place(*where) if len(where) == 3 else None
        return cls(int(pid) if pid.isdecimal() else None, place)

    def text(self) -> str:
        words = [str(self.pid or _NOBODY)]
        if self.place:
            words += [self.place.host, self.place.boot, self.place.pids]
        return " ".join(words)

    @property
    def elsewhere(self) -> bool:
        return self.place is not None and not self.place.is_here()
