"""The control groups of a node's pods, in whichever hierarchies this computer has."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["create", "found", "remove"]

_TOP = Path("/sys/fs/cgroup")
_INHERITED = ("cpuset.cpus", "cpuset.mems")  # empty in a new group of version 1
_GONE_WITHIN = 20.0


def create(name: str) -> None:
    for top in _hierarchies():
        group = top / name
        group.mkdir(exist_ok=True)
        if (top / "cgroup.controllers").exists():
            _delegate(top)
            _delegate(group)
        else:
            for file in _INHERITED:
                if (group / file).exists():
                    (group / file).write_text((top / file).read_text())


def found(name: str) -> list[Path]:
    return [top / name for top in _hierarchies() if (top / name).is_dir()]


def remove(name: str) -> None:
    """Processes that were killed take a moment to leave."""
    give_up = time.monotonic() + _GONE_WITHIN
    for group in found(name):
        while group.exists():
            try:
                for folder, _, _ in os.walk(group, topdown=False):
                    os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.02)


def _hierarchies() -> list[Path]:
    """The one of version 2 alone, or each one beside it."""
    if (_TOP / "cgroup.controllers").exists():
        return [_TOP]
    return sorted({each.resolve() for each in _TOP.iterdir() if (each / "cgroup.procs").exists()})


def _delegate(group: Path) -> None:
    for controller in (group / "cgroup.controllers").read_text().split():
        with suppress(OSError):  # not all can be had everywhere, and not all are needed
            (group / "cgroup.subtree_control").write_text(f"+{controller}")
