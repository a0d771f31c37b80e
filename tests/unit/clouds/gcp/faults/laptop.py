"""A laptop with a Google Cloud project whose machines only say that they run."""

from __future__ import annotations

from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.cloud import GoogleCloud
from tests.simcloud.gcp.account import SimGCP
from tests.unit.clouds.vm import laptop
from tests.unit.clouds.vm.laptop import ID, SCRIPT

__all__ = ["ID", "SCRIPT", "Laptop"]


class Laptop(laptop.Laptop):
    """Every verb, each as a command of its own. Calls are not repeated by themselves."""

    name = "gcp"
    sdk = "google.auth"
    parts = frozenset(("binding", "bucket", "firewall", "group", "object", "service", "template"))
    sim: SimGCP

    def __init__(self, sim: SimGCP) -> None:
        super().__init__(sim)
        self.account = Account(tries=1)

    @property
    def cloud(self) -> GoogleCloud:
        return GoogleCloud(self.account)

    def delete(self) -> None:
        """Machines of a group that is gone go a moment later."""
        try:
            super().delete()
        finally:
            self.sim.settle()
