"""Standard streams that are closed, or that take nothing more."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from tests.unit.cli.shell import COMMAND, Shell

_FULL = "Error: Could not write to standard output: No space left on device\n"

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")


def _redirected(shell: Shell, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{shlex.join(COMMAND)} {command}"],
        cwd=shell.cwd,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", ["list", "list --json", "--help"])
def test_what_nobody_takes_is_dropped(shell: Shell, command: str) -> None:
    shell.detached("true")
    for streams in (">&-", "<&- >&- 2>&-"):
        result = _redirected(shell, f"{command} {streams}")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_whole_life_without_standard_output(shell: Shell) -> None:
    task = shell.detached("sleep 60", "--name", "q")
    result = _redirected(shell, "delete q >&-")
    assert (result.returncode, shell.tasks()) == (0, [])
    assert result.stderr.startswith("Stopping machines\n")
    assert f"Deleted {task}" not in result.stderr
    assert _redirected(shell, "run -- echo hello >&-").returncode == 0


def test_without_standard_error(shell: Shell) -> None:
    task = shell.detached("true")
    result = _redirected(shell, "list 2>&-")
    assert (result.returncode, result.stdout.splitlines()[1].split()[0]) == (0, shell.name(task))
    assert _redirected(shell, "status nope 2>&-").returncode == 1
    assert _redirected(shell, "run -- echo hello 2>&-").stdout == "hello\n"


@needs_full
@pytest.mark.parametrize("command", ["list", "list --json", "--help", "completion bash"])
def test_a_full_device_is_told(shell: Shell, command: str) -> None:
    shell.detached("true")
    result = _redirected(shell, f"{command} > /dev/full")
    assert (result.returncode, result.stderr) == (1, _FULL)


@needs_full
def test_a_full_device_while_following(shell: Shell) -> None:
    result = _redirected(shell, "run -- echo hello > /dev/full")
    (task,) = shell.tasks()
    assert result.returncode == 1
    back = f"The task keeps running. Run `sojourn attach {shell.name(task)}` to reattach"
    assert _FULL + back in result.stderr


@needs_full
def test_a_full_device_for_words(shell: Shell) -> None:
    result = _redirected(shell, "run -- echo hello 2> /dev/full")
    assert (result.returncode, result.stdout) == (0, "hello\n")
