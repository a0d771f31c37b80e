"""`sojourn machine`."""

from __future__ import annotations

import json

import pytest

import sojourn
from sojourn.cli.commands.machine import _advice
from tests.support.waiting import until
from tests.unit.cli.shell import Shell

_SCRIPT = "#!/bin/sh\necho started\n"


def _created(shell: Shell, *options: str) -> str:
    (shell.cwd / "setup.sh").write_text(_SCRIPT)
    return shell.ok("machine", "create", *options, "setup.sh").strip()


def test_a_whole_life(shell: Shell) -> None:
    assert "No machines found" in shell("machine", "list").stderr
    own = _created(shell, "--name", "lab")
    until(lambda: shell.ok("logs", own) == "started\n")
    header, row = shell.ok("machine", "list").splitlines()
    assert header.split() == ["ID", "STATE", "CLOUD", "ADDRESS", "REASON"]
    assert row.split() == ["lab", "running", "local", "127.0.0.1"]
    told = json.loads(shell.ok("machine", "list", "--json"))
    assert (told["type"], told["id"], told["address"]) == ("machine", own, "127.0.0.1")
    assert shell.ok("machine", "list", "--quiet") == f"{own}\n"
    shell.ok("machine", "stop", own)
    assert shell.state(own) == "stopped"
    shell.ok("machine", "start", own)
    assert shell.ok("machine", "delete", own) == f"Deleted {own}\n"
    assert shell.tasks() == []


def test_tasks_are_not_listed(shell: Shell) -> None:
    shell.detached("sleep 60")
    assert shell.ok("machine", "list") == ""


def test_tasks_are_refused_and_their_own_command_is_named(shell: Shell) -> None:
    own = shell.detached("sleep 60")
    for verb in ("stop", "start", "delete", "ssh"):
        said = shell("machine", verb, own)
        assert said.returncode != 0
        assert f"{own} is a task, not a machine" in said.stderr
        assert f"Run `sojourn {verb} {own}`." in said.stderr
    assert shell.state(own) == "running"


def test_one_task_among_machines_and_nothing_is_done(shell: Shell) -> None:
    lab = _created(shell, "--name", "lab")
    task = shell.detached("sleep 60")
    assert shell("machine", "stop", lab, task).returncode != 0
    assert shell.state(lab) == "running"


def test_a_shell_on_a_machine(shell: Shell) -> None:
    own = _created(shell)
    said = shell("machine", "ssh", "--no-tty", own, input="exit 3\n")
    assert said.returncode == 3


def test_what_it_costs_to_forget_one_is_said(shell: Shell) -> None:
    shell.ok("machine", "create", "--name", "a")
    said = shell("machine", "create", "--name", "b", "--timeout", "90m", "--idle-timeout", "0")
    assert "It ends after 1h30m." in said.stderr
    said = shell("machine", "create", "--name", "c", "--timeout", "0", "--idle-timeout", "0")
    assert "It never ends by itself." in said.stderr


@pytest.mark.parametrize(("cloud", "costs"), [("local", False), ("aws", True), ("k8s", True)])
def test_only_machines_elsewhere_cost_money(cloud: str, costs: bool) -> None:
    said = _advice(sojourn.Task("#!/bin/sh\n", cloud=cloud, timeout=60), "x")
    assert ("costs money" in said) is costs


def test_an_idle_one_ends(shell: Shell) -> None:
    own = _created(shell, "--idle-timeout", "1")
    until(lambda: shell.state(own) == "succeeded")
    assert "idle for 1s" in shell.ok("status", own)


def test_bad_input_is_refused_before_anything_is_made(shell: Shell) -> None:
    (shell.cwd / "bad.sh").write_text("echo\n")
    refused = {
        ("bad.sh",): "startup_script: must start with a shebang",
        ("--idle-timeout", "soon"): "idle_timeout: must be a number of seconds or a duration",
        ("--cloud", "moon"): "cloud: unknown cloud 'moon'",
        ("absent.sh",): "absent.sh",
    }
    for options, why in refused.items():
        said = shell("machine", "create", *options)
        assert said.returncode == 2
        assert why in said.stderr
    assert shell.tasks() == []


def test_other_names_of_clouds(shell: Shell) -> None:
    said = shell("machine", "create", "--cloud", "kubernetes")
    assert "unknown cloud" not in said.stderr
    assert said.returncode != 0
