"""The simulated Google Cloud's kit: real machines, a strict project."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn.clouds.gcp import machines
from tests.contract.clouds import chosen
from tests.contract.clouds.kit import Kit
from tests.contract.clouds.vm_kit import VmKit, python_of_machines
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.machines.host import Host

MARKS = chosen.marks("gcp")
SHARES = not chosen.is_real("gcp")  # most of its code with AWS


class GcpKit(VmKit):
    cloud = "gcp"

    def __init__(self, root: Path) -> None:
        opened = ExitStack()
        self.host = opened.enter_context(Host())
        self.account = opened.enter_context(SimGCP(self.host))
        super().__init__(root, self.account, opened)
        generic = replace(machines._GENERIC["ubuntu"], pythons=(python_of_machines(),))
        self._patched.setitem(machines._GENERIC, "ubuntu", generic)

    def age(self, seconds: float) -> None:
        for bucket in self.account.buckets.all.values():
            for item in bucket.objects.values():
                item.created -= timedelta(seconds=seconds)

    def leaks(self) -> list[str]:
        self.account.settle()
        return super().leaks()


def contract(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return chosen.kit("gcp", make, tmp_path_factory)


def make(tmp_path_factory: pytest.TempPathFactory) -> GcpKit:
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    return GcpKit(tmp_path_factory.mktemp("gcp"))
