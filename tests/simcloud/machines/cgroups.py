"""The control group of a machine, in the host's version 2 hierarchy. It limits nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import patience

_GONE_WITHIN = 10.0


def hierarchy() -> Path | None:
    """Where the host has its version 2 hierarchy, alone or beside those of version 1."""
    with open("/proc/self/mountinfo") as mounts:
        for line in mounts:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2":
                return Path(fields[4])
    return None


def create(name: str) -> Path:
    top = hierarchy()
    assert top is not None, "no cgroup2 on this host"
    group = top / name
    group.mkdir()
    return group


def find(prefix: str) -> list[Path]:
    top = hierarchy()
    return sorted(top.glob(f"{prefix}*")) if top else []


def members(group: Path) -> Iterator[int]:
    for folder, _, _ in os.walk(group):
        with suppress(OSError):
            for line in Path(folder, "cgroup.procs").read_text().split():
                yield int(line)


def kill(group: Path) -> None:
    """All that is in it, in one moment; killed processes take a while to be gone."""
    with suppress(OSError):
        Path(group, "cgroup.kill").write_text("1")


def remove(group: Path) -> None:
    """Kill what is in it and remove it."""
    give_up = time.monotonic() + patience(_GONE_WITHIN)
    kill(group)
    while group.exists():
        try:
            for folder, _, _ in os.walk(group, topdown=False):
                os.rmdir(folder)
        except FileNotFoundError:
            continue
        except OSError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.005)
