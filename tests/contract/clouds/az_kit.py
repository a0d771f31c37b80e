"""The simulated Azure's kit: real machines, a strict subscription."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn import Handle
from sojourn.clouds.az import machines, scaler
from tests.contract.clouds import chosen
from tests.contract.clouds.kit import Kit
from tests.contract.clouds.vm_kit import VmKit, python_of_machines
from tests.simcloud.az.account import SimAzure
from tests.simcloud.machines.host import Host

MARKS = chosen.marks("az")
SHARES = not chosen.is_real("az")  # most of its code with AWS


class AzureKit(VmKit):
    cloud = "az"

    def __init__(self, root: Path) -> None:
        opened = ExitStack()
        self.host = opened.enter_context(Host())
        self.account = opened.enter_context(SimAzure(self.host))
        super().__init__(root, self.account, opened)
        generic = replace(machines._GENERIC["ubuntu"], pythons=(python_of_machines(),))
        self._patched.setitem(machines._GENERIC, "ubuntu", generic)
        self._patched.setattr(scaler, "_RETRY_AFTER", timedelta(seconds=2))

    def lose_agent(self, handle: Handle, rank: int) -> None:
        lost = handle.status().ranks[rank].machine
        [machine] = [i.machine for i in self.account.instances() if i.vm_id == lost]
        assert machine
        machine.kill()

    def age(self, seconds: float) -> None:
        self.account.age_blobs(seconds)


def contract(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return chosen.kit("az", make, tmp_path_factory)


def make(tmp_path_factory: pytest.TempPathFactory) -> AzureKit:
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    return AzureKit(tmp_path_factory.mktemp("az"))
