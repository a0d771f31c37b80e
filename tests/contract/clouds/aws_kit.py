"""The simulated AWS's kit: real machines, a strict account."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn import Handle
from sojourn.clouds.aws import machines, template
from tests.contract.clouds.kit import Kit
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.machines import python
from tests.simcloud.machines.host import Host

_WHEELS = Path(sys.prefix) / "wheels"  # `make` puts them there
_REAL = os.environ.get("SOJOURN_TEST_AWS") == "real"

MARKS = [pytest.mark.slow, *([pytest.mark.timeout(3600)] if _REAL else [])]  # its machines boot


class AwsKit:
    cloud = "aws"

    def __init__(self, root: Path) -> None:
        self._root = root
        self._patched = pytest.MonkeyPatch()
        self._open = ExitStack()
        host = self._open.enter_context(Host())
        self.account = self._open.enter_context(SimAWS(host))
        # Nobody wants to wait for a minute until a machine that was lost counts as lost.
        self._patched.setattr(template, "_TTL", 4.0)
        # The machines have the Python of this computer, whatever image they are started from.
        generic = replace(machines._GENERIC["ubuntu"], pythons=(_python_of_machines(),))
        self._patched.setitem(machines._GENERIC, "ubuntu", generic)
        # Wheels are fetched when the tests are set up: tests talk to nobody.
        (root / "cache" / "sojourn").mkdir(parents=True)
        (root / "cache" / "sojourn" / "wheels").symlink_to(_WHEELS)

    def environment(self) -> dict[str, str]:
        return {
            **self.account.environment(),
            "HOME": str(self._root),
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
        }

    def machine_disk(self, size: int) -> Path | None:
        return None

    def appear(self, name: str) -> None:
        for instance in self.account.instances():
            if instance.machine and instance.machine.alive:
                instance.machine.run("touch", f"/dev/shm/{name}")

    def lose_agent(self, handle: Handle, rank: int) -> None:
        lost = handle.status().ranks[rank].machine
        [machine] = [i.machine for i in self.account.instances() if i.id == lost]
        assert machine
        machine.kill()

    def lose_scaler(self, handle: Handle) -> bool:
        return False

    def age(self, seconds: float) -> None:
        for bucket in backends.s3().buckets.values():
            for item in bucket.keys.values():
                item.last_modified -= timedelta(seconds=seconds)

    def processes(self) -> list[str]:
        return [
            f"{instance.id}: {process.argv}"
            for instance in self.account.instances()
            if instance.machine and instance.machine.alive
            for process in instance.machine.processes()
        ]

    def leaks(self) -> list[str]:
        return self.account.inventory()

    def inside(self) -> tuple[str, str]:
        return "PYTHONPATH=/opt/sojourn/lib python3", "/opt/sojourn/settings.json"

    def close(self) -> None:
        self._patched.undo()
        self._open.close()


def _python_of_machines() -> str:
    found = python.find()
    assert found
    version = re.search(r"(\d)\.(\d+)$", os.path.realpath(found.executable))
    return f"{version[1]}{version[2]}" if version else f"3{sys.version_info.minor}"


def contract(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The account that the contract suite uses: a simulated one, unless somebody pays for it."""
    if not _REAL:
        return make(tmp_path_factory)
    from tests.contract.clouds import aws_real_kit  # the account is asked at once

    return aws_real_kit.make(tmp_path_factory)


def make(tmp_path_factory: pytest.TempPathFactory) -> AwsKit:
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    return AwsKit(tmp_path_factory.mktemp("aws"))
