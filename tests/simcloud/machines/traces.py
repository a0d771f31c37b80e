"""What there is on this computer of the machines of this process, to see that nothing is left."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.simcloud.machines import cgroups, leftovers

_OF_OTHERS = ("bench", "pods", "sojourn-", "veth")


def found(parent: Path | None = None) -> list[str]:
    """Launchers, folders, mounts, control groups, network links and descriptors, one line each.

    Links and descriptors need not be of machines: compare with what was there before.
    """
    mine = leftovers.mine()
    folders = Path(parent or tempfile.gettempdir()).glob(f"{mine}*")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(
        [
            *(f"process {pid}" for pid in _children()),
            *(f"folder {path}" for path in folders),
            *(f"mount {line}" for line in mounts if mine in line),
            *(f"group {path}" for path in cgroups.find(mine)),
            *(f"link {name}" for name in _links()),
            *(f"descriptor {target}" for target in _descriptors()),
        ]
    )


def threads_since(before: Sequence[threading.Thread]) -> list[threading.Thread]:
    """Those that came since then. Of the others, which former tests left, some may have gone."""
    return [each for each in threading.enumerate() if each not in before]


def _links() -> list[str]:
    """Without those that benchmarks and clusters make, which other tests may run just now."""
    names = [name for _, name in socket.if_nameindex()]
    return [name for name in names if not name.startswith(_OF_OTHERS)]


def _children() -> list[int]:
    """The launchers that this process has; each is the parent of its machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_bytes()
            if int(parent) == os.getpid() and b"machines.launcher" in command:
                found.append(int(path.name))
    return found


def _descriptors() -> list[str]:
    """What the open descriptors lead to, without the numbers of sockets and the like."""
    targets = []
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{entry}")
            if not target.startswith("/proc/"):
                targets.append(target.partition(":[")[0])
    return targets
