"""Azure, for tests of images and consoles; all else of its machines is in `test_az_tasks.py`."""

from __future__ import annotations

from tests.contract.clouds.az_kit import AzureKit


class AzureSide:
    def __init__(self, kit: AzureKit) -> None:
        self.kit = kit
        self.account = kit.account

    def no_keys(self, seconds: float) -> None:
        self.account.timing.identity_ready = seconds

    def secrets(self) -> list[str]:
        return [self.kit.environment()["AZURE_CLIENT_SECRET"]]


def make(kit: AzureKit) -> AzureSide:
    return AzureSide(kit)
