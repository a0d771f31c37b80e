"""A real Azure subscription's kit, for `SOJOURN_TEST_AZ=real`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.clouds.az.account import Account
from tests.contract.clouds.real_kit import RealKit
from tests.contract.clouds.sweep_az import Sweep


class RealAzureKit(RealKit):
    cloud = "az"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._account = Account()

    def sweeper(self) -> Sweep:
        return Sweep(self.mark)

    def alive(self) -> list[str]:
        return [item["properties"]["vmId"] for item in self.sweeper().machines()]

    def lose(self, machine: str) -> None:
        for item in self.sweeper().machines():
            if item["properties"]["vmId"] == machine:
                forced = {"forceDeletion": "true"}  # else it would get notice
                self._account.call("machine", "DELETE", item["id"], query=forced)


def make(tmp_path_factory: pytest.TempPathFactory) -> RealAzureKit:
    return RealAzureKit(tmp_path_factory.mktemp("az"))
