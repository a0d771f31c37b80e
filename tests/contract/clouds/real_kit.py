"""What the kits of real accounts have in common: they cost money, see CONTRIBUTING.

The credentials are those of whoever runs the tests. All that is made is marked, and what has
another mark, or none, is not touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from importlib import import_module
from pathlib import Path

import pytest

from sojourn import Handle, list_tasks
from sojourn.core.context import Context
from sojourn.storage.data import StoreData
from tests.contract.clouds import marking
from tests.contract.clouds.sweeping import Sweeper
from tests.support import waiting

_SLOWER = 20.0  # machines of simulated accounts boot in less than a second
_REPOSITORY = Path(__file__).parents[3]
_WHEELS = Path(sys.prefix) / "wheels"
_SSH = (
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "BatchMode=yes",
    "-o",
    "UserKnownHostsFile=/dev/null",
)


class RealKit:
    """All of a kit but `cloud`, and how its account is asked."""

    cloud = ""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.mark = uuid.uuid4().hex[:12]
        self._patched = pytest.MonkeyPatch()
        self._patched.setenv(marking.VARIABLE, self.mark)
        self._patched.setattr(waiting, "SLOWER", _SLOWER)
        import_module(f"tests.contract.clouds.{self.cloud}_marks").use(self._patched)
        (root / "site").mkdir()
        (root / "site" / "sitecustomize.py").write_text(marking.site(self.cloud))
        (root / "cache" / "sojourn").mkdir(parents=True)
        if _WHEELS.is_dir():
            (root / "cache" / "sojourn" / "wheels").symlink_to(_WHEELS)

    def sweeper(self) -> Sweeper:
        """Of what has the mark of this kit."""
        raise NotImplementedError

    def alive(self) -> list[str]:
        """The ids of all machines that have the mark, and run or are about to."""
        raise NotImplementedError

    def lose(self, machine: str) -> None:
        """End a machine without notice."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        paths = [str(self._root / "site"), str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]
        return {
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
            marking.VARIABLE: self.mark,
        }

    def machine_disk(self, size: int) -> Path | None:
        return None

    def appear(self, name: str) -> None:
        alive = self.alive()
        for handle in list_tasks():
            for machine in handle.machines() if handle.cloud == self.cloud else ():
                if machine.id in alive:
                    self._ssh(handle, machine.address, f"touch /dev/shm/{name}")

    def lose_agent(self, handle: Handle, rank: int) -> None:
        self.lose(handle.status().ranks[rank].machine)

    def lose_scaler(self, handle: Handle) -> bool:
        return False

    def age(self, seconds: float) -> None:
        """No store lets anybody change when an object was written: look from later on."""
        idle = StoreData.idle

        def later(data: StoreData, ctx: Context) -> float:
            return idle(data, ctx) + seconds

        self._patched.setattr(StoreData, "idle", later)

    def processes(self) -> list[str]:
        return self.alive()

    def leaks(self) -> list[str]:
        return [item.title for item in self.sweeper().found()]

    def mpi(self) -> dict[str, str] | None:
        return None

    def inside(self) -> tuple[str, str]:
        return "PYTHONPATH=/opt/sojourn/lib python3", "/opt/sojourn/settings.json"

    def close(self) -> None:
        self._patched.undo()
        self.sweeper().remove()

    def _ssh(self, handle: Handle, address: str, command: str) -> None:
        pair = handle.keys()
        assert pair
        file = self._root / "key"
        file.touch(mode=0o600)
        file.write_text(pair.private)
        words = ["ssh", "-i", str(file), *_SSH, f"ubuntu@{address}", command]
        subprocess.run(words, check=True, timeout=60)
