"""A real AWS account's kit, for `SOJOURN_TEST_AWS=real`."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest

from tests.contract.clouds.aws_marks import MARK
from tests.contract.clouds.real_kit import RealKit
from tests.contract.clouds.sweep_aws import Sweep

REGION = "us-west-1"  # where tasks go that name none


class RealAwsKit(RealKit):
    cloud = "aws"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._ec2 = boto3.Session(region_name=REGION).client("ec2")

    def sweeper(self) -> Sweep:
        return Sweep(REGION, self.mark)

    def alive(self) -> list[str]:
        found = self._ec2.describe_instances(
            Filters=[
                {"Name": f"tag:{MARK}", "Values": [self.mark]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ]
        )
        return [
            item["InstanceId"]
            for reservation in found["Reservations"]
            for item in reservation["Instances"]
        ]

    def lose(self, machine: str) -> None:
        self._ec2.terminate_instances(InstanceIds=[machine], SkipOsShutdown=True)


def make(tmp_path_factory: pytest.TempPathFactory) -> RealAwsKit:
    return RealAwsKit(tmp_path_factory.mktemp("aws"))
