"""What the kits of simulated clouds have in common whose machines boot."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from sojourn import Handle
from sojourn.clouds.vm import machine_settings
from tests.simcloud.machines import python
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.road import Road, write_config
from tests.simcloud.machines.running import RunningMachine
from tests.support import openmpi
from tests.support.waiting import patience

LAPTOP = "198.51.100.7"  # the laptop, as machines see it
_WHEELS = Path(sys.prefix) / "wheels"  # `make` puts them there


class Account(Protocol):
    """A simulated account."""

    def environment(self) -> dict[str, str]: ...

    def instances(self) -> Sequence[Any]: ...

    def admits(self, instance: Any, port: int, source: str) -> bool: ...

    def inventory(self) -> list[str]: ...


class VmKit:
    """All of a kit but `cloud`, `age`, and what its images are made to have."""

    cloud = ""
    host: Host

    def __init__(self, root: Path, account: Account, opened: ExitStack) -> None:
        self._root = root
        self._open = opened
        self._simulated = account
        self._patched = pytest.MonkeyPatch()
        # Nobody wants to wait for a minute until a machine that was lost counts as lost; but one
        # that a busy computer holds up for seconds is not.
        self._patched.setattr(machine_settings, "_TTL", patience(10))
        # Wheels are fetched when the tests are set up: tests talk to nobody.
        (root / "cache" / "sojourn").mkdir(parents=True)
        (root / "cache" / "sojourn" / "wheels").symlink_to(_WHEELS)
        # The only way of the laptop to machines, as the internet is to real ones
        write_config(root, opened.enter_context(Road(self._at, self._allowed)))

    def environment(self) -> dict[str, str]:
        return {
            **self._simulated.environment(),
            "HOME": str(self._root),
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
        }

    def machine_disk(self, size: int) -> Path | None:
        return None

    def appear(self, name: str) -> None:
        for instance in self._simulated.instances():
            if instance.machine and instance.machine.alive:
                instance.machine.run("touch", f"/dev/shm/{name}")

    def lose_agent(self, handle: Handle, rank: int) -> None:
        lost = handle.status().ranks[rank].machine
        [machine] = [i.machine for i in self._simulated.instances() if i.id == lost]
        assert machine
        machine.kill()

    def lose_scaler(self, handle: Handle) -> bool:
        return False

    def processes(self) -> list[str]:
        return [
            f"{instance.id}: {process.argv}"
            for instance in self._simulated.instances()
            if instance.machine and instance.machine.alive
            for process in instance.machine.processes()
        ]

    def leaks(self) -> list[str]:
        return self._simulated.inventory()

    def inside(self) -> tuple[str, str]:
        return "PYTHONPATH=/opt/sojourn/lib python3", "/opt/sojourn/settings.json"

    def mpi(self) -> dict[str, str] | None:
        """Machines get it as a package of Debian's would be: below /usr."""
        return openmpi.install(self.host.image / "usr")

    def _at(self, address: str) -> RunningMachine | None:
        """The machine that has this public address now."""
        found = self._instance(address)
        machine: RunningMachine | None = found.machine if found else None
        return machine

    def _allowed(self, address: str, port: int) -> bool:
        """As the account's firewalls tell; where no machine is, there is none."""
        found = self._instance(address)
        return found is None or self._simulated.admits(found, port, LAPTOP)

    def _instance(self, address: str) -> Any:
        for instance in self._simulated.instances():
            machine = instance.machine
            if machine and machine.alive and instance.public_address == address:
                return instance
        return None

    def close(self) -> None:
        self._patched.undo()
        self._open.close()


def python_of_machines() -> str:
    """The machines have the Python of this computer, whatever image they are started from."""
    found = python.find()
    assert found
    version = re.search(r"(\d)\.(\d+)$", os.path.realpath(found.executable))
    return f"{version[1]}{version[2]}" if version else f"3{sys.version_info.minor}"
