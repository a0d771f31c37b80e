"""Tasks that Terraform did not make, or not this one: imports, data sources, states of old."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sojourn.core.ids import TaskId
from tests.support.waiting import until
from tests.terraform.diagnosed import told, validated
from tests.terraform.project import Project, program

pytestmark = pytest.mark.slow

_SCRIPT = "#!/bin/sh\nmkdir -p results\necho done > results/file\n"


def _create(project: Project, *options: str, script: str = _SCRIPT) -> str:
    """Make a task with our own command line; its id."""
    (project.folder / "train.sh").write_text(script)
    return project.sojourn("create", *options, "train.sh").out.strip()


def _planned(project: Project, address: str = "iterative_task.example") -> dict[str, Any]:
    """What a plan would do with a resource."""
    project.run("plan", "-out=tfplan")
    changes = json.loads(project.run("show", "-json", "tfplan").out)["resource_changes"]
    change: dict[str, Any] = next(item for item in changes if item["address"] == address)["change"]
    return change


def _changed(change: dict[str, Any]) -> list[str]:
    before, after = change["before"], change["after"]
    return [name for name in before if before[name] != after[name]]


def test_a_gang_with_mpi_and_files_is_imported_without_a_replacement(project: Project) -> None:
    own = _create(project, "--slots", "2", "--gang-timeout", "5m", "--file", "in/a=b")
    project.write(
        """
resource "iterative_task" "example" {
  cloud        = "local"
  script       = file("train.sh")
  gang_timeout = 300
  mpi          = { slots = 2 }
  files        = { "in/a" = "b" }
}
"""
    )
    project.init()
    project.run("import", "iterative_task.example", own)
    found = project.task()
    assert (found["gang"], found["files"]) == (True, {"in/a": "b"})
    assert found["mpi"] == {"slots": "2", "implementation": "openmpi"}
    change = _planned(project)
    assert (change["actions"], _changed(change)) == (["update"], ["mpi"])
    project.apply()
    project.plan()
    project.destroy()


def test_a_task_of_the_command_line_is_imported_and_led_on(project: Project) -> None:
    maps = ("--env", "A=secret", "--tag", "a=b", "--mount", "/a=b", "--option", "c=d")
    own = _create(project, *maps, "--spot", "0.1")
    project.write(
        """
resource "iterative_task" "example" {
  cloud       = "local"
  script      = file("train.sh")
  environment = { A = "secret" }
  tags        = { a = "b" }
  mounts      = { "/a" = "b" }
  options     = { c = "d" }
  spot        = 0.1
}
"""
    )
    project.init()
    project.run("import", "iterative_task.example", own)
    assert project.task()["id"] == own
    change = _planned(project)
    assert (change["actions"], _changed(change)) == (["update"], ["environment"])
    assert "0 added, 1 changed, 0 destroyed" in project.apply().out
    project.plan()
    project.write(
        """
resource "iterative_task" "example" {
  cloud       = "local"
  script      = file("train.sh")
  environment = { A = "another" }
  tags        = { a = "b" }
  mounts      = { "/a" = "b" }
  options     = { c = "d" }
  spot        = 0.1
}
"""
    )
    assert _planned(project)["replace_paths"] == [["environment"]]
    project.destroy()


_WITH_STORAGE = """
resource "iterative_task" "example" {
  cloud       = "local"
  script      = "#!/bin/sh\\nmkdir -p results && echo done > results/file"
  environment = { A = "a" }
  name        = "imported"
  parallelism = 2
  storage {
    workdir = "."
    output  = "results"
    exclude = ["*.tmp"]
  }
}
"""


@pytest.fixture(scope="module")
def import_blocks(home: Path) -> None:
    """Skips where Terraform has no `import` blocks."""
    started = program()
    assert started
    said = subprocess.run([*started, "version", "-json"], capture_output=True, check=True).stdout
    version = json.loads(said)["terraform_version"]
    if [int(part) for part in version.split(".")[:2]] < [1, 5]:
        pytest.skip(f"Terraform {version} has no import blocks: install 1.5 or later")


@pytest.mark.usefixtures("import_blocks")
def test_a_task_whose_state_was_lost_is_imported_by_a_block(project: Project) -> None:
    project.write(_WITH_STORAGE)
    project.init()
    project.apply()
    project.until_state("succeeded")
    own = project.task()["id"]
    (project.folder / "terraform.tfstate").unlink()
    project.write(f'{_WITH_STORAGE}\nimport {{\n to = iterative_task.example\n id = "{own}"\n}}\n')
    change = _planned(project)
    assert (change["actions"], change["importing"]) == (["update"], {"id": own})
    assert _changed(change) == ["environment", "storage"]
    assert change["before"]["storage"][0]["workdir"] == str(project.folder)
    assert change["after"]["storage"][0]["workdir"] == "."
    said = project.apply().out
    assert "1 imported, 0 added, 1 changed, 0 destroyed" in said
    project.plan()
    project.destroy()
    assert (project.folder / "results/file").read_text() == "done\n"


def test_a_failed_update_after_an_import_can_be_repeated(project: Project) -> None:
    own = _create(project, "--env", "A=a")
    hcl = """
resource "iterative_task" "example" {
  cloud       = "local"
  script      = file("train.sh")
  environment = { A = "a" }
  storage { output = "results" }
  timeouts { update = "TIME" }
}
"""
    project.write(hcl.replace("TIME", "1ns"))
    project.init()
    project.run("import", "iterative_task.example", own)
    assert "Timed out" in project.apply(code=1).said
    project.write(hcl.replace("TIME", "1m"))
    assert "0 added, 1 changed, 0 destroyed" in project.apply().out
    assert project.task()["id"] == own
    project.destroy()
    assert (project.folder / "results/file").read_text() == "done\n"


def test_a_task_that_is_imported_completely_is_like_any_other(project: Project) -> None:
    own = _create(project)
    base = (
        'resource "iterative_task" "example" {\n  cloud  = "local"\n  script = file("train.sh")\n'
    )
    project.write(f"{base}}}\n")
    project.init()
    project.run("import", "iterative_task.example", own)
    project.plan()
    project.write(base + '  environment = { A = "a" }\n}\n')
    assert _planned(project)["replace_paths"] == [["environment"]]
    project.destroy()


@pytest.mark.usefixtures("import_blocks")
def test_terraform_can_write_the_configuration_of_what_it_imports(project: Project) -> None:
    own = _create(project, "--workdir", ".", "--output", "results", "--name", "generated")
    project.write(f'import {{\n to = iterative_task.example\n id = "{own}"\n}}\n')
    project.init()
    project.plan("-generate-config-out=generated.tf", code=2)
    assert "0 added, 0 changed, 0 destroyed" in project.apply().out
    project.plan()
    project.destroy()


def _import(name: str, wanted: str) -> str:
    of = "twin one" if name in ("whole", "start") else "twin two"
    return f"""
import {{
  to = iterative_task.{name}
  id = "{wanted}"
}}
resource "iterative_task" "{name}" {{
  cloud  = "local"
  script = file("train.sh")
  name   = "{of}"
}}
"""


@pytest.mark.usefixtures("import_blocks")
def test_imports_by_ids_that_are_short_or_wrong(project: Project) -> None:
    one, two = _create(project, "--name", "twin one"), _create(project, "--name", "twin two")
    absent = str(TaskId.deterministic("absent"))
    right = {
        "whole": one,
        "short": TaskId.parse(two).short,
        "start": one.removesuffix(TaskId.parse(one).check),
        "name": "twin-two",
    }
    wrong = {
        "absent": (absent, f"Task {absent} not found"),
        "mistyped": (one.replace("one", "two"), "its checksum does not match"),
        "ambiguous": ("tpi-twin", "matches multiple tasks"),
        "nonsense": ("nonsense", "Task nonsense not found"),
    }
    project.write("".join(_import(name, wanted) for name, (wanted, _) in wrong.items()))
    project.init()
    errors = told(project.run("plan", "-json", code=1))
    assert len(errors) == len(wrong)
    for _, text in wrong.values():
        assert [error.severity for error in errors if text in error.message] == ["error"], text
    project.write("".join(_import(name, wanted) for name, wanted in right.items()))
    assert "4 imported, 0 added, 0 changed, 0 destroyed" in project.apply().out
    found = {name.split(".")[1]: values["id"] for name, values in project.resources().items()}
    assert found == {"whole": one, "short": two, "start": one, "name": two}
    project.destroy()


def test_data_sources_show_tasks_that_others_lead(project: Project) -> None:
    (project.folder / "go").mkdir()
    running = _create(
        project,
        *("--name", "still running", "--workdir", "go", "--exclude", "*.tmp", "--env", "A=secret"),
        script="#!/bin/sh\necho hello\nexec sleep 600\n",
    )
    finished = _create(project, "--parallelism", "2", "--mount", "/a=b", "--option", "c=d")
    project.write(
        f"""
data "iterative_task" "id" {{ id = "{running}" }}
data "iterative_task" "short" {{ id = "{TaskId.parse(finished).short}" }}
data "iterative_task" "name" {{ name = "still running" }}
resource "iterative_task" "example" {{
  name   = "made here"
  cloud  = "local"
  script = "#!/bin/sh\\necho ${{data.iterative_task.id.state}}"
}}
data "iterative_task" "made" {{ id = iterative_task.example.id }}
data "iterative_task" "depending" {{
  name       = "made here"
  depends_on = [iterative_task.example]
}}
output "name" {{ value = data.iterative_task.name.id }}
"""
    )
    project.init()

    def settled() -> bool:
        project.apply()
        states = [values["state"] for values in project.resources().values()]
        return states.count("running") == 2 and states.count("succeeded") == 4

    until(settled, 60)
    found = project.resources()
    here = found["data.iterative_task.id"]
    assert here["id"] == running
    assert here["status"] == {"running": 1, "succeeded": 0, "failed": 0}
    assert here["logs"][0].endswith(" hello")
    assert (here["workdir"], here["exclude"]) == (str(project.folder / "go"), ["*.tmp"])
    assert "environment" not in here
    ended = found["data.iterative_task.short"]
    assert (ended["id"], ended["parallelism"], ended["output"]) == (finished, 2, "")
    assert ended["script"] == _SCRIPT
    assert (ended["tags"], ended["mounts"], ended["options"]) == (None, {"/a": "b"}, {"c": "d"})
    assert found["data.iterative_task.name"]["id"] == running
    made = found["iterative_task.example"]
    assert made["logs"][0].endswith(" running")
    assert found["data.iterative_task.made"]["id"] == made["id"]
    assert found["data.iterative_task.depending"]["id"] == made["id"]
    project.plan()
    project.destroy()
    assert project.tasks() == sorted([running, finished])
    project.sojourn("delete", "--no-pull", running, finished)


def test_data_sources_of_nothing_are_refused(project: Project) -> None:
    project.write(
        """
data "iterative_task" "both" {
  id   = "a"
  name = "b"
}
data "iterative_task" "none" {}
data "iterative_task" "empty" {
  id = ""
}
data "iterative_task" "nameless" {
  name = ""
}
data "iterative_task" "set" {
  name  = "a"
  state = "running"
}
"""
    )
    project.init()
    found = {one.block.split('"')[3]: one for one in validated(project, code=1)}
    assert found["both"].message.startswith("Exactly one of `id` and `name` is required")
    assert found["both"].line == 'id   = "a"'
    assert found["none"].message.startswith("Exactly one of `id` and `name` is required")
    assert found["empty"].message.startswith("id: must not be empty")
    assert found["empty"].line == 'id = ""'
    assert (found["nameless"].message[:5], found["nameless"].line) == ("name:", 'name = ""')
    assert found["set"].message.startswith("state: read-only")

    absent = str(TaskId.deterministic("absent"))
    project.write(
        f"""
data "iterative_task" "absent" {{
  name = "absent"
}}
data "iterative_task" "mistyped" {{
  id = "{absent[:-1]}x"
}}
data "iterative_task" "short" {{
  id = "xyz"
}}
"""
    )
    errors = {one.block.split('"')[3]: one for one in told(project.run("plan", "-json", code=1))}
    assert f"Task {absent} not found" in errors["absent"].message
    assert "its checksum does not match" in errors["mistyped"].message
    assert "Task xyz not found" in errors["short"].message


def _old_state(id: str, **attributes: Any) -> str:
    """A state as the old provider wrote it."""
    values = {
        "addresses": ["203.0.113.7"],
        "cloud": "local",
        "disk_size": -1,
        "environment": {"A": "a"},
        "events": ["2022-10-01 10:00:00: launched"],
        "id": id,
        "image": "ubuntu",
        "logs": ["old log"],
        "machine": "m",
        "name": "of old",
        "parallelism": 1,
        "permission_set": "",
        "region": "us-west",
        "script": _SCRIPT,
        "spot": -1,
        "ssh_private_key": "PRIVATE",
        "ssh_public_key": "PUBLIC",
        "status": {"running": 1},
        "storage": [{"exclude": ["*.tmp"], "output": "results", "workdir": "."}],
        "tags": None,
        "timeout": 86400,
        "timeouts": None,
        **attributes,
    }
    instance = {
        "schema_version": 0,
        "attributes": values,
        "sensitive_attributes": [],
        "private": "eyJlMmJmYjczMC1lY2FhLTExZTYtOGY4OC0zNDM2M2JjN2M0YzAiOnsiY3JlYXRlIjo5MDB9fQ==",
    }
    resource = {
        "mode": "managed",
        "type": "iterative_task",
        "name": "example",
        "provider": 'provider["registry.terraform.io/iterative/iterative"]',
        "instances": [instance],
    }
    return json.dumps(
        {
            "version": 4,
            "terraform_version": "1.3.0",
            "serial": 1,
            "lineage": "5f1e6a52-0a3b-4f0c-9a53-0d6b5d1f6c11",
            "outputs": {},
            "resources": [resource],
            "check_results": None,
        }
    )


_OF_OLD = """
resource "iterative_task" "example" {
  cloud       = "local"
  name        = "of old"
  script      = file("train.sh")
  environment = { A = "a" }
  storage {
    workdir = "."
    output  = "results"
    exclude = ["*.tmp"]
  }
}
"""


def test_a_state_of_the_old_provider_is_taken_over(project: Project) -> None:
    own = _create(project, "--name", "of old", "--workdir", ".", "--output", "results")
    state = project.folder / "terraform.tfstate"
    state.write_text(_old_state(own, forgotten="x", tags={}, status={}))
    project.write(_OF_OLD)
    project.init()
    project.until_state("succeeded")
    until(lambda: project.refreshed()["addresses"] == [], 60)  # a moment after the report
    task = project.task()
    assert (task["id"], task["addresses"], task["ssh_private_key"]) == (own, [], "")
    assert "forgotten" not in task
    assert "old log" not in task["logs"]
    project.plan()
    project.destroy()
    assert (project.folder / "results/file").read_text() == "done\n"


def test_an_old_state_with_less_in_it_needs_no_replacement(project: Project) -> None:
    own = _create(project, "--name", "of old")
    state = project.folder / "terraform.tfstate"
    less: dict[str, Any] = {"storage": [], "environment": {}, "machine": None, "spot": None}
    state.write_text(_old_state(own, **less))
    project.write(
        'resource "iterative_task" "example" {\n'
        '  cloud  = "local"\n  name   = "of old"\n  script = file("train.sh")\n}\n'
    )
    project.init()
    project.plan()
    project.destroy()


def test_old_states_of_tasks_that_are_gone_or_elsewhere(project: Project) -> None:
    own = str(TaskId.deterministic("of old"))
    state = project.folder / "terraform.tfstate"
    project.write(_OF_OLD)
    (project.folder / "train.sh").write_text(_SCRIPT)
    project.init()
    state.write_text(_old_state(own))
    assert "1 to add, 0 to change, 0 to destroy" in project.plan(code=2).out
    state.write_text(_old_state(own, cloud="moon"))
    for refused in (project.plan(code=1), project.destroy(code=1)):
        assert "uses the cloud 'moon', which is not known here" in refused.said
        assert "`terraform state rm` to remove it from the state" in refused.said
    project.run("state", "rm", "iterative_task.example")
