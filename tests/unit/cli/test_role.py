"""The role that `sojourn doctor --role` prints for a file."""

from __future__ import annotations

import pytest
import yaml

from tests.terraform import pages
from tests.unit.cli.shell import Shell

_GANG = """
resource "iterative_task" "gang" {
  cloud       = "k8s"
  parallelism = 2
  gang        = true
  script      = "#!/bin/sh"
}
"""
_MACHINE = """
resource "iterative_machine" "dev" {
  cloud = CLOUD
}
"""


def _role(shell: Shell, text: str) -> set[str]:
    shell.file("main.tf", text)
    role = yaml.safe_load(shell.ok("doctor", "--role", "k8s", "main.tf"))
    return {rule["resources"][0] for rule in role["rules"]}


def _base(shell: Shell) -> set[str]:
    role = yaml.safe_load(shell.ok("doctor", "--role", "k8s"))
    return {rule["resources"][0] for rule in role["rules"]}


@pytest.mark.parametrize("name", ["machine_kubernetes", "runner_kubernetes"])
def test_a_machine_or_runner_needs_what_a_plain_task_does(shell: Shell, name: str) -> None:
    assert _role(shell, pages.page(name)) == _base(shell)


@pytest.mark.parametrize("cloud", ['"k8s"', '"kubernetes"', "var.cloud"])
def test_a_machine_beside_a_task_adds_what_it_needs(shell: Shell, cloud: str) -> None:
    bucket = _GANG.replace("}", '  storage {\n    container = "s3://mine/x"\n  }\n}')
    assert "persistentvolumeclaims" not in _role(shell, bucket)
    found = _role(shell, bucket + _MACHINE.replace("CLOUD", cloud))
    assert found == _base(shell) | {"services", "networkpolicies"}


@pytest.mark.parametrize(
    "text",
    [
        _MACHINE.replace("CLOUD", '"aws"'),
        _MACHINE.replace("  cloud = CLOUD\n", ""),
        'resource "iterative_mpi_operator" "here" {}',
        "",
    ],
)
def test_a_file_with_nothing_in_the_cloud_is_refused(shell: Shell, text: str) -> None:
    shell.file("main.tf", text)
    told = shell("doctor", "--role", "k8s", "main.tf")
    assert told.returncode == 2
    assert "no task" in told.stderr


def test_what_is_wrong_with_a_task_is_told_also_beside_a_machine(shell: Shell) -> None:
    wrong = _GANG.replace("parallelism = 2", "parallelism = 0")
    shell.file("main.tf", wrong + _MACHINE.replace("CLOUD", '"k8s"'))
    told = shell("doctor", "--role", "k8s", "main.tf")
    assert told.returncode == 2
    assert "parallelism: must be" in told.stderr
