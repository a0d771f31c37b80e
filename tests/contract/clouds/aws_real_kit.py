"""A real AWS account's kit, for `SOJOURN_TEST_AWS=real`: it costs money, see CONTRIBUTING.

The credentials are those of whoever runs the tests. All that is made is marked, and what has
another mark, or none, is not touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import boto3
import pytest

from sojourn import Handle, list_tasks
from sojourn.clouds.aws import store_address
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.locations import Locations
from sojourn.clouds.vm import keys
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.storage.data import StoreData
from sojourn.storage.store import open_store
from tests.contract.clouds import aws_marks
from tests.contract.clouds.sweep_aws import Sweep
from tests.support import waiting

REGION = "us-west-1"  # where tasks go that name none
_SLOWER = 20.0  # machines of the simulated account boot in less than a second
_REPOSITORY = Path(__file__).parents[3]
_WHEELS = Path(sys.prefix) / "wheels"
_SITE = "from tests.contract.clouds import aws_marks\naws_marks.use()\n"


class RealAwsKit:
    cloud = "aws"

    def __init__(self, root: Path) -> None:
        self._root = root
        self.mark = uuid.uuid4().hex[:12]
        self._ec2 = boto3.Session(region_name=REGION).client("ec2")
        self._patched = pytest.MonkeyPatch()
        self._patched.setenv(aws_marks.VARIABLE, self.mark)
        self._patched.setattr(waiting, "SLOWER", _SLOWER)
        aws_marks.use(self._patched)
        (root / "site").mkdir()
        (root / "site" / "sitecustomize.py").write_text(_SITE)
        (root / "cache" / "sojourn").mkdir(parents=True)
        if _WHEELS.is_dir():
            (root / "cache" / "sojourn" / "wheels").symlink_to(_WHEELS)

    def environment(self) -> dict[str, str]:
        paths = [str(self._root / "site"), str(_REPOSITORY), os.environ.get("PYTHONPATH", "")]
        return {
            "PYTHONPATH": os.pathsep.join(path for path in paths if path),
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
            aws_marks.VARIABLE: self.mark,
        }

    def machine_disk(self, size: int) -> Path | None:
        return None

    def appear(self, name: str) -> None:
        for handle in list_tasks():
            for machine in handle.machines() if handle.cloud == self.cloud else ():
                if machine.id in self._alive():
                    self._ssh(handle, machine.address, f"touch /dev/shm/{name}")

    def lose_agent(self, handle: Handle, rank: int) -> None:
        lost = handle.status().ranks[rank].machine
        self._ec2.terminate_instances(InstanceIds=[lost], SkipOsShutdown=True)

    def lose_scaler(self, handle: Handle) -> bool:
        return False

    def age(self, seconds: float) -> None:
        """S3 does not let anybody change when an object was written: look from later on."""
        idle = StoreData.idle

        def later(data: StoreData, ctx: Context) -> float:
            return idle(data, ctx) + seconds

        self._patched.setattr(StoreData, "idle", later)

    def processes(self) -> list[str]:
        return self._alive()

    def leaks(self) -> list[str]:
        return [item.title for item in Sweep(REGION, self.mark).found()]

    def inside(self) -> tuple[str, str]:
        return "PYTHONPATH=/opt/sojourn/lib python3", "/opt/sojourn/settings.json"

    def close(self) -> None:
        self._patched.undo()
        Sweep(REGION, self.mark).remove()

    def _alive(self) -> list[str]:
        found = self._ec2.describe_instances(
            Filters=[
                {"Name": f"tag:{aws_marks.MARK}", "Values": [self.mark]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ]
        )
        return [
            item["InstanceId"]
            for reservation in found["Reservations"]
            for item in reservation["Instances"]
        ]

    def _ssh(self, handle: Handle, address: str, command: str) -> None:
        account, task = Account(), TaskId.parse(handle.id)
        opened = open_store(store_address.address(account, Locations(account).of(task, None)))
        pair = keys.key_pair(opened, task)
        assert pair
        file = self._root / "key"
        file.touch(mode=0o600)
        file.write_text(pair.private)
        options: list[Any] = ["-i", file, "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes"]
        options += ["-o", "UserKnownHostsFile=/dev/null"]
        subprocess.run(["ssh", *options, f"ubuntu@{address}", command], check=True, timeout=60)


def make(tmp_path_factory: pytest.TempPathFactory) -> RealAwsKit:
    return RealAwsKit(tmp_path_factory.mktemp("aws"))
