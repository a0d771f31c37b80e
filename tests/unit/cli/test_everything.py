"""`--all`, which asks first."""

from __future__ import annotations

import pytest

from tests.support.waiting import until
from tests.unit.cli.shell import Shell


def _two(shell: Shell) -> tuple[str, str]:
    running = shell.detached("sleep 60", "--name", "running")
    ended = shell.detached("true", "--name", "ended")
    until(lambda: shell.state(ended) == "succeeded")
    until(lambda: shell.state(running) == "running")
    return running, ended


def test_on_a_terminal_it_asks(shell: Shell) -> None:
    running, ended = _two(shell)
    terminal = shell.terminal("stop", "--all")
    terminal.until("Stop this task? [y/N]")
    assert shell.name(ended) not in terminal.shown  # it has no machines
    assert shell.name(running) in terminal.shown
    terminal.type("n\n")
    assert terminal.wait() == 1
    assert shell.state(running) == "running"
    terminal = shell.terminal("stop", "--all")
    terminal.until("[y/N]")
    terminal.type("y\n")
    assert terminal.wait() == 0
    assert shell.state(running) == "stopped"

    terminal = shell.terminal("delete", "--all", "--no-pull")
    terminal.until("Delete these 2 tasks? Their results are lost. [y/N]")
    terminal.press_ctrl_c()
    assert terminal.wait() == 130
    assert sorted(shell.tasks()) == sorted([running, ended])
    terminal = shell.terminal("rm", "--all")
    terminal.until("Delete these 2 tasks? Their results are downloaded first. [y/N]")
    terminal.type("n\n")
    assert terminal.wait() == 1
    shell.ok("delete", ended)
    terminal = shell.terminal("delete", "--all")
    terminal.until("Delete this task? Its results are downloaded first. [y/N]")
    terminal.type("y\n")
    assert terminal.wait() == 0
    assert shell.tasks() == []


@pytest.mark.parametrize("verb", ["stop", "delete"])
def test_without_a_terminal_it_has_to_be_confirmed(shell: Shell, verb: str) -> None:
    running, ended = _two(shell)
    result = shell(verb, "--all")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: all: requires --yes without a terminal\n"
    (row,) = shell.rows(verb, "--all")
    assert (row["type"], row["error"]) == ("error", "InvalidInput")
    assert shell.state(running) == "running"
    both = shell(verb, "--all", "--yes", running)
    assert both.returncode == 2
    assert "all: cannot be combined with IDS" in both.stderr
    shell.ok(verb, "--all", "--yes")
    assert shell.tasks() == ([] if verb == "delete" else sorted([running, ended]))


def test_nothing_there(shell: Shell) -> None:
    for verb in ("stop", "delete"):
        result = shell(verb, "--all")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "No tasks found\n")
        assert shell.rows_and_notes(verb, "--all") == ([], "No tasks found\n")


def test_delete_never_guesses(shell: Shell) -> None:
    task = shell.detached("sleep 60")
    result = shell("delete")
    assert (result.returncode, result.stdout) == (2, "")
    assert "Missing argument 'IDS...'" in result.stderr
    assert shell.tasks() == [task]


@pytest.mark.parametrize("verb", ["stop", "delete"])
def test_one_that_goes_while_it_asks_keeps_no_other(shell: Shell, verb: str) -> None:
    going, staying = (shell.detached("sleep 60", "--name", name) for name in ("going", "staying"))
    terminal = shell.terminal(verb, "--all")
    terminal.until("[y/N]")
    shell.ok("delete", going)
    terminal.type("y\n")
    assert terminal.wait() == 0
    assert "Task going was deleted by another command" in terminal.shown
    assert shell.tasks() == ([] if verb == "delete" else [staying])
    assert verb == "delete" or shell.state(staying) == "stopped"
