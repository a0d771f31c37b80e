"""The whole life of a task on a cloud whose machines boot, led by Terraform."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives import serialization

from tests.contract.clouds.vm_kit import VmKit
from tests.terraform.project import Project

# `{image}` by its own name: machines here have the Python of this computer, whatever that is.
_TASK = """
resource "iterative_task" "example" {{
  cloud       = "{cloud}"
  machine     = "m"
  region      = "us-west"
  image       = "{image}"
  spot        = 0
  timeout     = 3600
  environment = {{ GREETING = "Hello, world!" }}
  storage {{
    workdir = "."
    output  = "results"
  }}
  script = <<-END
    #!/bin/bash
    mkdir -p results
    echo "$GREETING" | tee results/greeting
  END
}}
output "logs" {{
  value = try(join("\\n", iterative_task.example.logs), "")
}}
output "key" {{
  value     = iterative_task.example.ssh_private_key
  sensitive = true
}}
"""


def task_on(cloud: str, image: str) -> str:
    return _TASK.format(cloud=cloud, image=image)


def give_account(project: Project, kit: VmKit, *variables: str) -> Project:
    """Let Terraform have the kit's account: variables that begin like these."""
    for name, value in kit.environment().items():
        if name.startswith((*variables, "XDG_CACHE_HOME")):
            project.environment[name] = value
    return project


def live(
    kit: VmKit,
    project: Project,
    text: str,
    *,
    check: Callable[[dict[str, Any], str], None],
) -> None:
    """From plan to destroy; `check` is given the task as it ended, and its public key."""
    project.write(text)
    project.init()
    assert "1 to add, 0 to change, 0 to destroy" in project.plan(code=2).out
    assert kit.leaks() == []
    applied = project.apply()
    assert "PRIVATE KEY" not in applied.out + applied.err

    project.until_state("succeeded")
    task = project.task()
    assert task["status"] == {"running": 0, "succeeded": 1, "failed": 0}
    assert project.run("output", "--raw", "logs").out.endswith(" Hello, world!")
    check(task, _public_key(project, task))
    shown = project.sojourn("status", "--json", task["id"])
    assert json.loads(shown.out)["state"] == "succeeded"
    assert "PRIVATE KEY" not in shown.out + shown.err
    project.plan(code=0)

    project.destroy()
    assert (project.folder / "results" / "greeting").read_text() == "Hello, world!\n"
    assert kit.leaks() == []


def _public_key(project: Project, task: dict[str, Any]) -> str:
    private = project.run("output", "--raw", "key").out
    assert private == task["ssh_private_key"]
    key = serialization.load_ssh_private_key(private.encode(), None)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    assert task["ssh_public_key"].startswith(public.decode())
    return public.decode()
