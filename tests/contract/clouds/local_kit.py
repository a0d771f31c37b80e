"""The local cloud's kit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sojourn import Handle
from sojourn.core.context import Context
from tests.support import openmpi
from tests.support.waiting import patience

MARKS: list[pytest.MarkDecorator] = []


class LocalKit:
    cloud = "local"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._mounts: list[Path] = []
        self._appeared: list[Path] = []
        for name in ("data", "cache"):
            (root / name).mkdir()

    def environment(self) -> dict[str, str]:
        return {
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
        }

    def machine_disk(self, size: int) -> Path | None:
        if os.geteuid() != 0:
            return None
        disk = self._root / "cache"
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        self._mounts.append(disk)
        return disk

    def appear(self, name: str) -> None:
        self._appeared.append(Path("/dev/shm") / name)
        self._appeared[-1].touch()

    def lose_agent(self, handle: Handle, rank: int) -> None:
        # Not by its status: whoever looks at the task has a lost supervisor started again.
        records = handle._cloud.data(handle._id).records(Context(), rank + 1)
        machine = records[rank].machine
        rows = json.loads((self._scaler(handle) / "machines.json").read_text())
        os.kill(next(int(row["pid"]) for row in rows if row["id"] == machine), signal.SIGKILL)

    def lose_scaler(self, handle: Handle) -> bool:
        pid = (self._scaler(handle) / "supervisor.lock").read_text().split()[0]
        os.kill(int(pid), signal.SIGKILL)
        return True

    def age(self, seconds: float) -> None:
        for path in (self._root / "data").rglob("*"):
            before = path.stat().st_mtime - seconds
            os.utime(path, (before, before))

    def processes(self) -> list[str]:
        """Known by the folder that they all inherited in their environment."""
        mark = f"XDG_DATA_HOME={self._root}/".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (process / "cmdline").read_text(errors="replace").replace("\0", " ")
                ours = mark in (process / "environ").read_bytes()
                if ours and int(process.name) != os.getpid():
                    found.append(f"process {process.name}: {command}")
        return found

    def leaks(self) -> list[str]:
        give_up = time.monotonic() + patience(5)  # a supervisor needs a moment to end
        while (processes := self.processes()) and time.monotonic() < give_up:
            time.sleep(0.05)
        folders = [self._root / "data", self._root / "cache"]
        return processes + [str(path) for folder in folders for path in folder.rglob("*")]

    def inside(self) -> tuple[str, str]:
        return sys.executable, "../agent.json"

    def mpi(self) -> dict[str, str] | None:
        return openmpi.environment()

    def close(self) -> None:
        for path in self._appeared:
            path.unlink(missing_ok=True)
        for line in self.processes():
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[1].rstrip(":")), signal.SIGKILL)
        for disk in self._mounts:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)

    def _scaler(self, handle: Handle) -> Path:
        return self._root / "data/sojourn/local" / handle.id / "scaler"


def contract(tmp_path_factory: pytest.TempPathFactory) -> LocalKit:
    return LocalKit(tmp_path_factory.mktemp("local"))
