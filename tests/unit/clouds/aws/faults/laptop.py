"""A laptop with an AWS account whose machines only say that they run: the product's own calls."""

from __future__ import annotations

from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.cloud import AwsCloud
from tests.simcloud.aws.account import SimAWS
from tests.unit.clouds.vm import laptop
from tests.unit.clouds.vm.laptop import ID, SCRIPT

__all__ = ["ID", "SCRIPT", "Laptop"]


class Laptop(laptop.Laptop):
    """Every verb, each as a command of its own: nothing is remembered but the SDK's clients."""

    name = "aws"
    sdk = "boto3"
    parts = frozenset(
        (
            *("bucket", "group", "key", "launch", "object"),
            *("policy", "profile", "role", "scheduled", "security"),
        )
    )
    sim: SimAWS

    def __init__(self, sim: SimAWS) -> None:
        super().__init__(sim)
        self.account = Account()

    @property
    def cloud(self) -> AwsCloud:
        return AwsCloud(self.account)
