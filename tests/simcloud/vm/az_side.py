"""Azure, for tests that run on all clouds; most of its machines is in `test_az_tasks.py`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sojourn.clouds.az.on_machine import setting
from tests.contract.clouds.az_kit import AzureKit
from tests.simcloud.az_user import User

_KINDS = (
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.Insights/autoscalesettings",
    "Microsoft.ManagedIdentity/userAssignedIdentities",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Network/virtualNetworks",
)


class AzureSide:
    def __init__(self, kit: AzureKit) -> None:
        self.kit = kit
        self.account = kit.account

    def wanted(self) -> list[int]:
        return [setting.view(each.content).least for each in self._of("Insights/autoscaleSettings")]

    def _of(self, kind: str) -> list[Any]:
        return list(self.account._parts.resources.of_type(f"Microsoft.{kind}", ""))

    @contextmanager
    def shared_network(self) -> Iterator[dict[str, Any]]:
        user = User(self.kit.environment())
        try:
            subnet = user.make_network(user.make_group("shared"))
            yield {"region": "us-east", "options": {"network": subnet}}
            user.delete("resourceGroups/shared")
        finally:
            user.close()

    def no_keys(self, seconds: float) -> None:
        self.account.timing.identity_ready = seconds

    def secrets(self) -> list[str]:
        return [self.kit.environment()["AZURE_CLIENT_SECRET"]]

    def in_account(self, name: str) -> Iterator[Any]:
        """What the services keep beside the store: tags, models, assignments, first scripts."""
        user = User(self.kit.environment())
        group = f"resourceGroups/{name}"
        yield user.get(group)
        yield user.get(f"{group}/resources")
        for kind in _KINDS:
            yield user.get(f"{group}/providers/{kind}/{name}")
        yield user.machines(f"{group}/providers/{_KINDS[0]}/{name}")
        yield user.get("providers/Microsoft.Authorization/roleAssignments")
        [instance] = self.account.instances()
        yield instance.profile
        yield instance.custom_data
        user.close()


def make(kit: AzureKit) -> AzureSide:
    return AzureSide(kit)
