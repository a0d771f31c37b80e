"""The simulated AWS's kit: real machines, a strict account."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn.clouds.aws import machines
from tests.contract.clouds import chosen
from tests.contract.clouds.kit import Kit
from tests.contract.clouds.vm_kit import VmKit, python_of_machines
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.machines.host import Host

MARKS = chosen.marks("aws")


class AwsKit(VmKit):
    cloud = "aws"

    def __init__(self, root: Path) -> None:
        opened = ExitStack()
        self.host = opened.enter_context(Host())
        self.account = opened.enter_context(SimAWS(self.host))
        super().__init__(root, self.account, opened)
        generic = replace(machines._GENERIC["ubuntu"], pythons=(python_of_machines(),))
        self._patched.setitem(machines._GENERIC, "ubuntu", generic)

    def age(self, seconds: float) -> None:
        for bucket in backends.s3().buckets.values():
            for item in bucket.keys.values():
                item.last_modified -= timedelta(seconds=seconds)


def contract(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return chosen.kit("aws", make, tmp_path_factory)


def make(tmp_path_factory: pytest.TempPathFactory) -> AwsKit:
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    return AwsKit(tmp_path_factory.mktemp("aws"))
