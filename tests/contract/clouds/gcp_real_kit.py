"""A real Google Cloud project's kit, for `SOJOURN_TEST_GCP=real`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from sojourn.clouds.gcp.account import Account
from sojourn.core.errors import SojournError
from tests.contract.clouds.real_kit import RealKit
from tests.contract.clouds.sweep_gcp import Sweep


class RealGcpKit(RealKit):
    cloud = "gcp"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._account = Account()

    def sweeper(self) -> Sweep:
        return Sweep(self.mark)

    def alive(self) -> list[str]:
        return [str(item["id"]) for item in self.sweeper().machines()]

    def lose(self, machine: str) -> None:
        """Google has no end without notice: its power is cut, then it is deleted."""
        for item in self.sweeper().machines():
            if str(item["id"]) == machine:
                path = item["selfLink"].partition(f"/projects/{self._account.project}/")[2]
                with suppress(SojournError):  # what does not run cannot be reset
                    self._account.compute("machine", "POST", f"{path}/reset")
                self._account.compute("machine", "DELETE", path)


def make(tmp_path_factory: pytest.TempPathFactory) -> RealGcpKit:
    return RealGcpKit(tmp_path_factory.mktemp("gcp"))
