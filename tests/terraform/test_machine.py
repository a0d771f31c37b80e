"""`iterative_machine` on the local cloud, led by Terraform."""

from __future__ import annotations

import json

import pytest

from tests.support.waiting import until
from tests.terraform.hcl import quoted
from tests.terraform.project import Project

_ADDRESS = "iterative_machine.machine"
_MACHINE = """
resource "iterative_machine" "machine" {{
  cloud             = "local"
  region            = "us-west"
  name              = "machine"
  instance_hdd_size = "10"
  instance_type     = "m"
  {more}
}}
"""


def _applied(project: Project, more: str = "") -> str:
    project.write(_MACHINE.format(more=more))
    project.init()
    project.apply()
    return str(project.task(_ADDRESS)["id"])


def test_a_whole_life(project: Project) -> None:
    own = _applied(project, 'startup_script = "#!/bin/sh\\necho hello"')
    assert own.startswith("tpi-machine-")
    now = project.task(_ADDRESS)
    assert now["instance_ip"] == "127.0.0.1"
    assert now["instance_launch_time"]
    assert now["state"] == "running"
    assert now["startup_script"] == "#!/bin/sh\necho hello"
    assert now["instance_hdd_size"] == 10
    assert project.sojourn("exec", own, "--", "echo", "here").out == "here\n"
    project.plan(code=0)
    project.destroy()


def test_two_of_one_name_are_two_machines(project: Project) -> None:
    one = _MACHINE.format(more="")
    project.write(one + one.replace('"machine" {', '"other" {'))
    project.init()
    project.apply()
    assert len(project.tasks()) == 2
    project.destroy()


def test_one_that_is_gone_is_made_again(project: Project) -> None:
    own = _applied(project)
    project.sojourn("delete", own, "--no-pull")
    project.plan(code=2)
    project.apply()
    assert project.task(_ADDRESS)["id"] != own
    project.destroy()


def test_one_that_ended_is_replaced_and_leaves_nothing(project: Project) -> None:
    # It is not idle before an apply has seen that it runs.
    idle = project.folder.parent / "idle"
    script = quoted(f"#!/bin/sh\nuntil [ -e {idle} ]; do :; done\n")
    own = _applied(project, f"idle_timeout = 1\nstartup_script = {script}")
    idle.touch()
    until(lambda: project.stored("store/reports/*/*"), 60)
    idle.unlink()
    assert "must be replaced" in project.plan(code=2).said
    project.apply()
    assert project.tasks() == [project.task(_ADDRESS)["id"]] != [own]
    project.destroy()


def test_a_stopped_one_stays(project: Project) -> None:
    own = _applied(project)
    project.sojourn("stop", own)
    project.plan(code=0)
    assert project.refreshed(_ADDRESS)["state"] == "stopped"
    project.destroy()


def test_another_argument_is_another_machine(project: Project) -> None:
    own = _applied(project)
    project.write(_MACHINE.format(more='instance_gpu = "tesla"'))
    assert "must be replaced" in project.plan(code=2).said
    project.apply()
    assert project.task(_ADDRESS)["id"] != own
    project.destroy()


def test_import(project: Project) -> None:
    made = project.sojourn("machine", "create", "--name", "machine", "--no-output", "--json").out
    own = next(row["id"] for row in map(json.loads, made.splitlines()) if "address" in row)
    project.write('resource "iterative_machine" "machine" {\n cloud = "local"\n}')
    project.init()
    project.run("import", "-no-color", _ADDRESS, own)
    assert project.task(_ADDRESS)["instance_ip"] == "127.0.0.1"
    said = project.plan(code=2).out
    assert "0 to destroy" in said, [x for x in said.splitlines() if "forces" in x]
    project.apply()
    project.plan(code=0)
    assert project.tasks() == [own]
    project.destroy()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('token = "secret"', "token: belongs to a runner"),
        ('startup_script = "echo"', "startup_script: must start with a shebang"),
        ("spot_price = -2\nspot = true", "spot_price: must be -1"),
        ('ssh_private = "none"', "ssh_private: must be a private SSH key"),
        ('aws_subnet_id = "subnet-1"', "aws_subnet_id: has no effect with cloud = 'local'"),
        ("timeout = -1", "timeout: must be a number of seconds"),
    ],
)
def test_bad_input_is_refused(project: Project, more: str, said: str) -> None:
    project.write(_MACHINE.format(more=more))
    project.init()
    assert said in project.validate(code=1).said


def test_old_names_are_taken_with_a_note(project: Project) -> None:
    project.write(
        'resource "iterative_machine" "machine" {\n  cloud = "local"\n  region = "us-west-1"\n'
        '  ami = "iterative-cml"\n  instance_name = "machine"\n  instance_hdd_size = "10"\n'
        '  instance_type = "t2.micro"\n}\n'
    )
    project.init()
    said = project.apply().said
    assert "ami is the old name of image" in said
    assert "The image iterative-cml is no longer published; using 'ubuntu' instead" in said
    assert project.task(_ADDRESS)["id"].startswith("tpi-machine-")
    project.plan(code=0)
    project.destroy()
