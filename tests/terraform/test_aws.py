"""The whole life of a task on AWS, led by Terraform."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization

from tests.contract.clouds import aws_kit
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.kit import in_use
from tests.simcloud.aws import backends
from tests.terraform.project import Project

pytestmark = pytest.mark.slow

# The image by its own name: machines here have the Python of this computer, whatever that is.
_TASK = """
resource "iterative_task" "example" {
  cloud       = "aws"
  machine     = "m"
  region      = "us-west"
  image       = "ubuntu@099720109477:x86_64:*ubuntu-noble-24.04-amd64-server-*"
  spot        = 0
  timeout     = 3600
  environment = { GREETING = "Hello, world!" }
  storage {
    workdir = "."
    output  = "results"
  }
  script = <<-END
    #!/bin/bash
    mkdir -p results
    echo "$GREETING" | tee results/greeting
  END
}
output "logs" {
  value = try(join("\\n", iterative_task.example.logs), "")
}
output "key" {
  value     = iterative_task.example.ssh_private_key
  sensitive = true
}
"""


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsKit]:
    with in_use(aws_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def on_aws(kit: AwsKit, project: Project) -> Project:
    for name, value in kit.environment().items():
        if name.startswith("AWS_") or name == "XDG_CACHE_HOME":
            project.environment[name] = value
    return project


def test_whole_life(kit: AwsKit, on_aws: Project) -> None:
    project = on_aws
    project.write(_TASK)
    project.init()
    assert "1 to add, 0 to change, 0 to destroy" in project.plan(code=2).out
    assert kit.leaks() == []
    applied = project.apply()
    assert "PRIVATE KEY" not in applied.out + applied.err

    project.until_state("succeeded")
    task = project.task()
    assert task["status"] == {"running": 0, "succeeded": 1, "failed": 0}
    assert project.run("output", "--raw", "logs").out.endswith(" Hello, world!")
    assert any("Launching a new EC2 instance" in event for event in task["events"])

    private = project.run("output", "--raw", "key").out
    assert private == task["ssh_private_key"]
    key = serialization.load_ssh_private_key(private.encode(), None)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert task["ssh_public_key"].startswith(public.decode())
    [pair] = backends.ec2("us-west-1").key_pairs.values()
    assert pair.material_public.decode().split()[:2] == public.decode().split()
    shown = project.sojourn("status", "--json", task["id"])
    assert json.loads(shown.out)["state"] == "succeeded"
    assert "PRIVATE KEY" not in shown.out + shown.err
    project.plan(code=0)

    project.destroy()
    assert (project.folder / "results" / "greeting").read_text() == "Hello, world!\n"
    assert kit.leaks() == []


def test_what_aws_refuses_is_told_by_the_plan(kit: AwsKit, on_aws: Project) -> None:
    on_aws.write(_TASK.replace('machine     = "m"', 'machine     = "m+k80"'))
    on_aws.init()
    said = on_aws.plan(code=1).said
    assert "p2.xlarge is not available in us-west-1; AWS is retiring K80s" in said
    assert kit.leaks() == []
