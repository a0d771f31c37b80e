"""What tests leave in an account is found and removed by its mark, and nothing else is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from tests.contract.clouds import aws_marks, sweep_aws
from tests.contract.clouds.aws_real_kit import REGION, RealAwsKit
from tests.simcloud.aws.account import SimAWS

pytestmark = pytest.mark.slow  # it asks every region


@pytest.fixture
def kit(laptop: SimAWS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealAwsKit:
    """The kit for a real account, on one that is not."""
    made = RealAwsKit(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def _create(name: str) -> sojourn.Handle:
    return sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws", name=name))


def test_all_that_a_task_leaves_is_found(laptop: SimAWS, kit: RealAwsKit) -> None:
    handle = _create("a")
    laptop.wait(laptop.instances)
    kinds = {title.rpartition(" ")[0] for title in kit.leaks()}
    handle.delete(fetch=False)
    assert kinds >= {"bucket", "group", "key pair", "launch template", "machine", "profile", "role"}
    assert "security group" in kinds
    assert kit.leaks() == []
    kit.close()


def test_the_sweep_removes_all_of_it(laptop: SimAWS, kit: RealAwsKit) -> None:
    _create("a")
    laptop.wait(laptop.instances)
    kit.close()
    assert laptop.inventory() == []


def test_what_has_no_mark_or_another_stays(
    laptop: SimAWS, kit: RealAwsKit, monkeypatch: pytest.MonkeyPatch
) -> None:
    kit._patched.undo()
    other = _create("other")
    laptop.wait(lambda: [i for i in laptop.instances() if i.state == "running"])
    before = laptop.inventory()
    assert sweep_aws.main(["--yes", REGION]) == 0
    assert laptop.inventory() == before
    monkeypatch.setenv(aws_marks.VARIABLE, "another")
    with pytest.MonkeyPatch.context() as patched:
        aws_marks.use(patched)
        marked = _create("marked")
    assert kit.leaks() == []
    kit.close()
    assert marked.exists()
    assert sweep_aws.main(["--yes", REGION]) == 0
    assert not marked.exists()
    other.delete(fetch=False)
    assert laptop.inventory() == []


def test_without_yes_nothing_is_removed(
    laptop: SimAWS, kit: RealAwsKit, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = _create("a")
    assert sweep_aws.main([REGION]) == 0
    assert f"bucket {handle.id}" in capsys.readouterr().out
    assert handle.exists()
    kit.close()


def test_processes_that_tests_start_mark_what_they_make_as_well(kit: RealAwsKit) -> None:
    code = (
        "from sojourn.clouds.aws import machine_types, tags\n"
        "from sojourn import Task\n"
        "tags = tags.tags_of('id', Task('#!/bin/sh'))\n"
        "print(tags['sojourn:test'], machine_types.instance_type('m'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [kit.mark, "t2.micro"]
    kit.close()


def test_a_lost_agent_is_a_machine_that_was_terminated(laptop: SimAWS, kit: RealAwsKit) -> None:
    handle = _create("a")
    laptop.wait(lambda: [i for i in laptop.instances() if i.state == "running"])
    [machine] = kit.processes()
    kit._ec2.terminate_instances(InstanceIds=[machine], SkipOsShutdown=True)
    laptop.wait(lambda: laptop.instances()[0].state == "terminated")
    handle.delete(fetch=False)
    kit.close()
