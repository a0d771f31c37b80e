"""A laptop with an Azure subscription whose machines only say that they run."""

from __future__ import annotations

from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from tests.simcloud.az.account import SimAzure
from tests.unit.clouds.vm import laptop
from tests.unit.clouds.vm.laptop import ID, SCRIPT

__all__ = ["ID", "SCRIPT", "Laptop"]


class Laptop(laptop.Laptop):
    """Every verb, each as a command of its own: nothing is remembered but connections."""

    name = "az"
    sdk = "azure.identity"
    parts = frozenset(
        (
            *("resourceGroups", "storageAccounts", "containers", "blob"),
            *("userAssignedIdentities", "virtualNetworks", "subnets", "networkSecurityGroups"),
            *("virtualMachineScaleSets", "autoscaleSettings"),
        )
    )
    of_image = (
        "resourceGroups /resourceGroups/sojourn-image-tools-westus2",
        "images /resourceGroups/sojourn-image-tools-westus2/",
    )
    sim: SimAzure

    def __init__(self, sim: SimAzure) -> None:
        super().__init__(sim)
        self.account = Account()

    @property
    def cloud(self) -> AzureCloud:
        return AzureCloud(self.account)

    def has_all(self) -> bool:
        """Also all rights of machines."""
        there = super().has_all()
        roles = [line for line in self.sim.inventory() if line.startswith("role ")]
        return there and len(roles) == 5
