"""What tests leave in an account is found and removed by its mark, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.clouds.aws_real_kit import RealAwsKit
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User
from tests.unit.clouds.vm import sweeps

pytestmark = pytest.mark.slow  # it asks every region

KINDS = {
    *("bucket", "group", "key pair", "launch template", "machine", "profile", "role"),
    "security group",
}
CODE = """
from sojourn import Task
from sojourn.clouds.aws import machine_types, tags

print(tags.tags_of("id", Task("#!/bin/sh"))["sojourn:test"], machine_types.instance_type("m"))
"""


@pytest.fixture
def kit(laptop: SimAWS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealAwsKit:
    """The kit for a real account, on one that is not."""
    made = RealAwsKit(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def test_all_that_a_task_leaves_is_found(laptop: SimAWS, kit: RealAwsKit) -> None:
    sweeps.all_that_a_task_leaves_is_found(laptop, kit, KINDS)


def test_the_sweep_removes_all_of_it(laptop: SimAWS, kit: RealAwsKit) -> None:
    sweeps.all_of_it_is_removed(laptop, kit)


def test_the_sweep_removes_images(laptop: SimAWS, kit: RealAwsKit) -> None:
    sweeps.an_image_is_removed(laptop, kit)


def test_what_has_no_mark_or_another_stays(
    laptop: SimAWS, kit: RealAwsKit, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.make_bucket("tpi-bucket")
    tags = [{"Key": "sojourn:testing", "Value": kit.mark}]
    user.s3.put_bucket_tagging(Bucket="tpi-bucket", Tagging={"TagSet": tags})
    user.ec2.create_key_pair(KeyName="tpi-sojourn-test")
    sweeps.what_has_no_mark_or_another_stays(laptop, kit, monkeypatch)


def test_without_yes_nothing_is_removed(
    kit: RealAwsKit, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeps.nothing_is_removed_without_yes(kit, capsys)


def test_processes_that_tests_start_mark_what_they_make_as_well(kit: RealAwsKit) -> None:
    sweeps.processes_mark_as_well(kit, CODE, "t2.micro")


def test_a_lost_agent_is_a_machine_that_was_terminated(laptop: SimAWS, kit: RealAwsKit) -> None:
    sweeps.a_lost_machine_is_gone(laptop, kit)
