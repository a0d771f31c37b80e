"""The whole life of a task on AWS, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.clouds import aws_kit
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.kit import in_use
from tests.simcloud.aws import backends
from tests.terraform.machine_life import live_as_machine, live_with_own_key
from tests.terraform.project import Project
from tests.terraform.runner_life import RIGHT, WRONG, live_as_runner, on_machines
from tests.terraform.whole_life import give_account, live, task_on

pytestmark = pytest.mark.slow

_IMAGE = "ubuntu@099720109477:x86_64:*ubuntu-noble-24.04-amd64-server-*"
_TASK = task_on("aws", _IMAGE)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsKit]:
    with in_use(aws_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def on_aws(kit: AwsKit, project: Project) -> Project:
    return give_account(project, kit, "AWS_")


def _check(task: dict[str, Any], public: str) -> None:
    assert any("Launching a new EC2 instance" in event for event in task["events"])
    [pair] = backends.ec2("us-west-1").key_pairs.values()
    assert pair.material_public.decode().split()[:2] == public.split()


def test_whole_life(kit: AwsKit, on_aws: Project) -> None:
    live(kit, on_aws, _TASK, check=_check)


def test_what_aws_refuses_is_told_by_the_plan(kit: AwsKit, on_aws: Project) -> None:
    on_aws.write(_TASK.replace('machine     = "m"', 'machine     = "m+k80"'))
    on_aws.init()
    said = on_aws.plan(code=1).said
    assert "p2.xlarge has K80s, which AWS is retiring: use m+t4" in said
    assert kit.leaks() == []


@pytest.mark.parametrize("cloud", ["aws", ""])
def test_a_machine(kit: AwsKit, on_aws: Project, cloud: str) -> None:
    live_as_machine(kit, on_aws, cloud, _IMAGE)


def test_a_machine_with_a_key_of_the_user(kit: AwsKit, on_aws: Project) -> None:
    live_with_own_key(kit, on_aws, "aws", _IMAGE)


@pytest.mark.parametrize("kind", [RIGHT, pytest.param(WRONG, marks=pytest.mark.full)])
def test_a_runner(kit: AwsKit, on_aws: Project, kind: str) -> None:
    with on_machines(kit) as forge:
        live_as_runner(on_aws, forge, "aws", f'image = "{_IMAGE}"', kind)
    assert kit.leaks() == []
