"""The simulated AWS's kit: real machines, a strict account."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn.clouds.aws import machines
from tests.contract.clouds.kit import Kit
from tests.contract.clouds.vm_kit import VmKit, python_of_machines
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.machines.host import Host

_REAL = os.environ.get("SOJOURN_TEST_AWS") == "real"

MARKS = [pytest.mark.slow, *([pytest.mark.timeout(3600)] if _REAL else [])]  # its machines boot


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
