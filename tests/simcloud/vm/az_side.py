"""Azure, for tests of images; all else with machines of it is in `test_az_tasks.py`."""

from __future__ import annotations

from tests.contract.clouds.az_kit import AzureKit


class AzureSide:
    def __init__(self, kit: AzureKit) -> None:
        self.kit = kit
        self.account = kit.account

    def secrets(self) -> list[str]:
        return [self.kit.environment()["AZURE_CLIENT_SECRET"]]


def make(kit: AzureKit) -> AzureSide:
    return AzureSide(kit)
