"""Tasks whose arguments are more than literals: values that come late, many at once, lifecycles."""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import Any

import pytest

from tests.support.waiting import until
from tests.terraform.diagnosed import told
from tests.terraform.project import Project, program

pytestmark = pytest.mark.slow

_BASE = 'cloud = "local"\n  script = "#!/bin/sh"\n'


def _wait(project: Project, state: str = "succeeded") -> dict[str, dict[str, Any]]:
    """Wait until all tasks are in this state; their values."""
    found: dict[str, dict[str, Any]] = {}

    def over() -> bool:
        project.run("apply", "-refresh-only", "-auto-approve", "-no-color")
        found.update(project.resources())
        return all(found[name]["state"] == state for name in found if "iterative" in name)

    until(over, 60)
    return found


def _lines(task: dict[str, Any], rank: int = 0) -> list[str]:
    return [line.partition(" ")[2] for line in task["logs"][rank].splitlines()]


_LATE = """
resource "terraform_data" "cloud" { input = "local" }
resource "terraform_data" "script" { input = "#!/bin/sh\\nls; echo $TEXT $INDEX" }
resource "terraform_data" "text" { input = "late" }
resource "terraform_data" "number" { input = 2 }
resource "terraform_data" "workdir" { input = "work" }
resource "iterative_task" "late" {
  cloud       = terraform_data.cloud.output
  script      = terraform_data.script.output
  parallelism = terraform_data.number.output
  name        = terraform_data.text.output
  environment = { TEXT = terraform_data.text.output }
  tags        = { text = terraform_data.text.output }
  mounts      = { "/data" = "claim:${terraform_data.text.output}" }
  options     = { pod = yamlencode({ spec = { a = terraform_data.text.output } }) }
  storage {
    workdir = terraform_data.workdir.output
    exclude = ["*.tmp", "*.${terraform_data.text.output}"]
  }
  timeouts { create = "${terraform_data.number.output}m" }
}
resource "iterative_task" "refined" {
  cloud  = "local"
  script = <<-END
    #!/bin/sh
    VALUE=$${NONE:-${terraform_data.text.id}}
    echo "$VALUE"
  END
  dynamic "storage" {
    for_each = [for text in split(",", terraform_data.text.output) : text]
    content { output = storage.value }
  }
  dynamic "timeouts" {
    for_each = [for text in split(",", terraform_data.text.output) : text]
    content { create = "5m" }
  }
}
"""


def test_values_that_are_known_only_at_the_apply(project: Project) -> None:
    work = project.folder / "work"
    work.mkdir()
    for name in ("a.tmp", "b.late", "c.txt"):
        (work / name).touch()
    project.write(_LATE)
    project.init()
    project.validate()
    assert "7 to add" in project.plan(code=2).out
    project.apply()
    found = _wait(project)
    late = found["iterative_task.late"]
    assert late["id"].startswith("tpi-late-")
    assert [_lines(late, rank)[:2] for rank in (0, 1)] == [["c.txt", "late"]] * 2
    refined = found["iterative_task.refined"]
    assert _lines(refined) == [found["terraform_data.text"]["id"]]
    assert refined["storage"][0]["output"] == "late"
    project.plan()
    project.destroy()


_BAD_LATE = {
    "cloud": ('cloud = terraform_data.late["nowhere"].output', "unknown cloud 'nowhere'"),
    "script": ('script = terraform_data.late["echo"].output', "must start with a shebang"),
    "parallelism": ('parallelism = terraform_data.late["0"].output', "from 1 to 1000, got 0"),
    "environment": (
        'environment = { "A*" = terraform_data.late["echo"].output }',
        "a glob imports local variables",
    ),
    "exclude": ('storage { exclude = [terraform_data.late["{"].output] }', "invalid pattern"),
    "output": (
        'storage { output = terraform_data.late["../up"].output }',
        "must be a path inside workdir",
    ),
    "workdir": (
        'storage { workdir = terraform_data.late["echo"].output }',
        "not found; create it first",
    ),
    "timeouts": ('timeouts { create = terraform_data.late["echo"].output }', "invalid duration"),
}


def test_a_bad_value_that_is_known_only_at_the_apply_is_refused_then(project: Project) -> None:
    hcl = 'resource "terraform_data" "late" {\n  for_each = toset('
    hcl += '["nowhere", "echo", "0", "{", "../up"])\n  input = each.value\n}\n'
    for name, (line, _) in _BAD_LATE.items():
        base = [part for part in _BASE.splitlines() if name not in part.split()]
        hcl += "\n".join([f'resource "iterative_task" "{name}" {{', *base, line, "}\n"])
    project.write(hcl)
    project.init()
    project.plan(code=2)
    errors = told(project.run("apply", "-json", "-auto-approve", code=1))
    found = {one.block.split('"')[3]: one for one in errors if one.severity == "error"}
    assert found.keys() == _BAD_LATE.keys()
    wrong = [
        (n, found[n].message) for n, row in _BAD_LATE.items() if row[1] not in found[n].message
    ]
    assert wrong == []
    assert project.tasks() == []
    assert [name for name in project.resources() if "iterative" in name] == []


def test_a_bad_change_that_is_known_only_at_the_apply_leaves_the_task_as_it_is(
    project: Project,
) -> None:
    hcl = """
resource "terraform_data" "late" { input = "OUTPUT" }
resource "iterative_task" "example" {
  cloud  = "local"
  script = "#!/bin/sh\\nmkdir one two; touch one/a two/b"
  storage { output = terraform_data.late.output }
}
"""
    project.write(hcl.replace("OUTPUT", "one"))
    project.init()
    project.apply()
    own = project.task()["id"]
    project.write(hcl.replace("OUTPUT", "../up"))
    assert "must be a path inside workdir" in project.apply(code=1).said
    assert project.task()["storage"][0]["output"] == "one"
    project.write(hcl.replace("OUTPUT", "two"))
    assert "0 added, 2 changed, 0 destroyed" in project.apply().out
    assert project.task()["id"] == own
    project.until_state("succeeded")
    project.destroy()
    assert (project.folder / "two/b").exists()
    assert not (project.folder / "one").exists()


def test_many_at_once_by_count_by_for_each_and_in_modules(project: Project) -> None:
    project.write(
        """
resource "iterative_task" "counted" {
  count  = 20
  cloud  = "local"
  script = "#!/bin/sh\\necho ${count.index}"
}
resource "iterative_task" "each" {
  for_each    = { a = "apple", b = "bread" }
  cloud       = "local"
  script      = "#!/bin/sh\\necho $FOOD"
  environment = { FOOD = each.value }
}
module "inner" {
  source = "./inner"
  words  = "from a module"
}
output "logs" { value = module.inner.logs }
"""
    )
    project.write(
        """
terraform {
  required_providers { iterative = { source = "iterative/iterative" } }
}
variable "words" { type = string }
resource "iterative_task" "example" {
  cloud  = "local"
  script = "#!/bin/sh\\necho ${var.words}; cat file"
  storage { workdir = path.module }
}
output "logs" { value = iterative_task.example.logs }
""",
        "inner/module.tf",
    )
    (project.folder / "inner/file").write_text("of its folder\n")
    project.init()
    project.apply("-parallelism=20")
    found = _wait(project)
    logs = {name: _lines(task) for name, task in found.items()}
    assert [logs[f"iterative_task.counted[{index}]"] for index in range(20)] == [
        [str(index)] for index in range(20)
    ]
    assert logs['iterative_task.each["a"]'] == ["apple"]
    assert logs['iterative_task.each["b"]'] == ["bread"]
    [inner] = json.loads(project.run("output", "-json", "logs").out)
    assert "from a module" in inner
    assert "of its folder" in inner
    project.plan("-parallelism=20")
    project.destroy("-parallelism=20")


_ODD_VALUES = {
    "texts": 'parallelism = "2"\n spot = "0.1"\n timeout = "60"\n disk_size = "10"',
    "tenth": "spot = 0.1",
    "digits": "spot = 0.12345678901234567890123456789",
    "tiny": "spot = 1e-9",
    "large": "timeout = 9223372036854775807\n disk_size = 9007199254740993\n spot = 1e30",
    "exponent": "timeout = 1e3",
    "nulls": "\n".join(
        f"{name} = null"
        for name in (
            *("region", "machine", "disk_size", "spot", "image", "permission_set", "parallelism"),
            *("environment", "timeout", "tags", "mounts", "options", "name"),
        )
    ),
    "null_storage": """storage {
      workdir        = null
      output         = null
      exclude        = null
      container      = null
      container_opts = null
    }
    timeouts { create = null }""",
    "null_elements": "environment = { NOT_SET = null }\n"
    + "\n".join(f"{name} = {{ a = null }}" for name in ("tags", "mounts", "options")),
    "empty": "environment = {}\n tags = {}\n mounts = {}\n options = {}\n"
    'name = ""\n storage {}\n timeouts {}',
}


def test_numbers_and_nulls_are_kept_as_they_are_written(project: Project) -> None:
    project.write(
        "".join(
            f'resource "iterative_task" "{name}" {{\n{_BASE}{lines}\n}}\n'
            for name, lines in _ODD_VALUES.items()
        )
    )
    project.init()
    project.apply()
    found = _wait(project)
    project.plan()
    texts = found["iterative_task.texts"]
    assert (texts["parallelism"], texts["spot"], texts["disk_size"]) == (2, 0.1, 10)
    assert found["iterative_task.large"]["timeout"] == 9223372036854775807
    assert found["iterative_task.large"]["disk_size"] == 9007199254740993
    assert found["iterative_task.exponent"]["timeout"] == 1000
    assert found["iterative_task.nulls"]["machine"] == "m"
    assert (
        '"spot": 0.12345678901234567890123456789'
        in (project.folder / "terraform.tfstate").read_text()
    )
    project.destroy()


_TEXT = "größe \"quoted\" 'single' $HOME ${x} %{y} \\ back\ttab\n\nlast ☃ 𝔘 line\n"


def test_the_environment_arrives_and_secrets_are_not_shown(project: Project) -> None:
    project.write(
        """
variable "secret" {
  type      = string
  sensitive = true
}
variable "text" { type = string }
resource "iterative_task" "example" {
  cloud  = "local"
  script = <<-END
    #!/bin/sh
    printf %s "$TEXT" | sha256sum
    printf %s "$LONG" | wc -c
    printf '%s\\n' "$SECRET" "$PASSED" "$FOUND_1" "$FOUND_2" "$${NOT_SET-unset}"
    : ${var.secret}
  END
  environment = {
    TEXT       = var.text
    LONG       = join("", [for i in range(1000) : format("%0100d", i)])
    SECRET     = var.secret
    PASSED     = ""
    "FOUND_*"  = ""
    NOT_SET    = null
  }
  tags = { secret = var.secret }
}
"""
    )
    project.init()
    given = {
        "TF_VAR_secret": "s3cr3t-value",
        "TF_VAR_text": _TEXT,
        "PASSED": "passed",
        "FOUND_1": "first",
        "FOUND_2": "second",
        "NOT_SET": "local",
    }
    project.environment.update(given)
    said = [project.plan(code=2).said, project.apply().said]
    project.until_state("succeeded")
    said.append(project.run("show", "-no-color").said.partition("logs = [")[0])
    said.append(project.plan().said)
    assert [text for text in said if "s3cr3t" in text or "größe" in text] == []
    assert _lines(project.task()) == [
        f"{hashlib.sha256(_TEXT.encode()).hexdigest()}  -",
        "100000",
        "s3cr3t-value",
        "passed",
        "first",
        "second",
        "unset",
    ]
    assert "second\n" in _console(project, 'try(join("\\n", iterative_task.example.logs), "")')
    project.destroy()


def _console(project: Project, expression: str) -> str:
    started = program()
    assert started
    done = subprocess.run(
        [*started, "console"],
        input=expression + "\n",
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_lifecycles_targets_aliases_and_saved_plans(project: Project) -> None:
    project.write(
        """
provider "iterative" { alias = "second" }
variable "generation" { default = 1 }
resource "terraform_data" "trigger" { input = var.generation }
resource "iterative_task" "ignoring" {
  provider = iterative.second
  cloud    = "local"
  script   = "#!/bin/sh\\necho ${var.generation}"
  lifecycle { ignore_changes = [script] }
}
resource "iterative_task" "triggered" {
  cloud  = "local"
  script = "#!/bin/sh\\necho hello"
  lifecycle {
    replace_triggered_by  = [terraform_data.trigger]
    create_before_destroy = true
  }
}
"""
    )
    project.init()
    project.apply("-target=iterative_task.ignoring")
    ignoring = project.task("iterative_task.ignoring")["id"]
    assert project.tasks() == [ignoring]
    project.plan("-out=tfplan", code=2)
    project.run("apply", "-no-color", "tfplan")
    triggered = project.task("iterative_task.triggered")["id"]
    assert project.tasks() == sorted([ignoring, triggered])

    project.plan("-out=tfplan", "-var=generation=2", code=2)
    changes = json.loads(project.run("show", "-json", "tfplan").out)["resource_changes"]
    assert {change["name"]: change["change"]["actions"] for change in changes} == {
        "ignoring": ["no-op"],
        "triggered": ["create", "delete"],
        "trigger": ["update"],
    }
    project.run("apply", "-no-color", "tfplan")
    second = project.task("iterative_task.triggered")["id"]
    assert second != triggered
    assert project.tasks() == sorted([ignoring, second])
    project.plan("-var=generation=2")
    project.destroy("-target=iterative_task.ignoring")
    assert project.tasks() == [second]
    project.destroy()
