"""Help, and what is said to those who mistyped."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import pytest

from sojourn import __version__
from sojourn.cli.app import cli
from tests.unit.cli.shell import COMMAND, Shell

COMMANDS = cli.list_commands(None)  # type: ignore[arg-type]
GROUPS = ["image", "machine", "mpi", "runner", "terraform"]
NO_ROWS = ("completion", "exec", "ssh")  # what they print is not ours
WITH_JSON = [name for name in COMMANDS if name not in (*NO_ROWS, *GROUPS)]


def test_help_lists_every_command(shell: Shell) -> None:
    shown = shell.ok("--help")
    for name in COMMANDS:
        assert re.search(rf"^  {name}  +\S", shown, re.MULTILINE)
    assert shell.ok("-h") == shown


def test_version(shell: Shell) -> None:
    assert shell.ok("--version") == f"sojourn, version {__version__}\n"


@pytest.mark.parametrize("module", ["sojourn", "sojourn.cli"])
def test_the_command_line_is_a_module_too(module: str) -> None:
    command = [sys.executable, "-m", module, "--version"]
    assert subprocess.check_output(command, text=True) == f"sojourn, version {__version__}\n"


def test_the_version_stands_in_one_place() -> None:
    """An installation has the number of the code; the project's file has none of its own."""
    assert metadata.version("sojourn") == __version__
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert 'dynamic = ["version"]' in text
    assert not re.search(r"^version\s*=", text, re.MULTILINE)


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if not isinstance(command, click.Group):
        yield command
        return
    for name in command.list_commands(None):  # type: ignore[arg-type]
        found = command.get_command(None, name)  # type: ignore[arg-type]
        assert found
        yield from _leaves(found)


def test_defaults_are_told_beside_their_options_alone() -> None:
    for command in _leaves(cli):
        assert "(default" not in (command.help or ""), command.name


def test_the_time_of_a_runner_and_of_a_machine(shell: Shell) -> None:
    for group, verb, default in (("runner", "launch", "no limit"), ("machine", "create", "24h;")):
        shown = " ".join(shell.ok(group, verb, "--help").split())
        assert f"90m or 1h30m (default: {default}" in shown
        assert len(re.findall(r"--timeout\b", shown)) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(shell: Shell, name: str) -> None:
    shown = shell.ok(name, "--help")
    assert shown.startswith(f"Usage: sojourn {name} ")
    example = rf"^  (eval \"\$\()?sojourn {name}( |$|\n)"
    assert re.search(example, shown, re.MULTILINE), shown
    assert ("--json" in shown) == (name in WITH_JSON)


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("lst", "list"), ("remove", None), ("rnu", "run")]
)
def test_unknown_command(shell: Shell, typed: str, meant: str | None) -> None:
    result = shell(typed)
    assert result.returncode == 2
    assert result.stdout == ""
    expected = f"Did you mean '{meant}'?" if meant else "Run `sojourn --help` for a list."
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["run"], "script: required; specify a script, a command, a task.yaml or a main.tf"),
        (["run", "--"], "script: required; specify a script, a command, a task.yaml or a main.tf"),
        (["run", "no-such-file"], "script: no-such-file not found"),
        (["run", "no-such.yaml"], "script: no-such.yaml not found"),
        (["run", "--cloud", "locl", "--", "true"], "did you mean 'local'?"),
        (
            ["run", "--cloud", "mars", "--", "true"],
            "unknown cloud 'mars' (available: aws, az, gcp, k8s, local",
        ),
        (
            ["run", "--parallelism", "0", "--", "true"],
            "parallelism: must be a whole number from 1 to 1000, got 0",
        ),
        (
            ["run", "--timeout", "-5", "--", "true"],
            "timeout: must be a number of seconds (at least 1)",
        ),
        (["run", "--spot", "-2", "--", "true"], "spot: must be -1 (on demand)"),
        (["run", "--env", "1A=x", "--", "true"], "environment.1A: name must contain only letters"),
        (["run", "--env", "=x", "--", "true"], "environment: must be NAME=VALUE, got '=x'"),
        (["run", "--env", "A_*=x", "--", "true"], "its value must be empty"),
        (["run", "--tag", "x", "--", "true"], "tags: must be NAME=VALUE, got 'x'"),
        (["run", "--mount", "x", "--", "true"], "mounts: must be --mount PATH=WHAT, got 'x'"),
        (["run", "--mount", "/x=", "--", "true"], "mounts: must be --mount PATH=WHAT, got '/x='"),
        (
            ["run", "--mount", "/data:claim:a/b:ro", "--", "true"],
            "got '/data:claim:a/b:ro'; did you mean --mount /data=claim:a/b:ro?",
        ),
        (
            ["run", "--option", "pod", "--", "true"],
            "options: must be --option KEY=VALUE or --option KEY=@FILE, got 'pod'",
        ),
        (
            ["run", "--option", "pod=@no.yaml", "--", "true"],
            "options.pod: no.yaml: could not read file: No such file or directory",
        ),
        (
            ["run", "--option", "pod=@", "--", "true"],
            "options.pod: must be --option pod=@FILE, got 'pod=@'",
        ),
        (
            ["run", "--file", "a", "--", "true"],
            "files: must be --file PATH=@FILE or --file PATH=TEXT, got 'a'",
        ),
        (
            ["run", "--file", "a=@no.dat", "--", "true"],
            "files.a: no.dat: could not read file: No such file or directory",
        ),
        (["run", "--file", "a=@", "--", "true"], "files.a: must be --file a=@FILE, got 'a=@'"),
        (
            ["run", "--file", "/etc/a=x", "--", "true"],
            "files: /etc/a would be written to this computer; use a path in the workdir",
        ),
        (["run", "--slots", "0", "--", "true"], "mpi.slots: must be a whole number from 1"),
        (
            ["run", "--output", "../x", "--", "true"],
            "storage.output: must be a path inside workdir",
        ),
        (["run", "--workdir", "nowhere", "--", "true"], "nowhere not found; create it first"),
        (
            ["run", "--container", "b", "--", "true"],
            "storage.container: not supported by the local",
        ),
        (["run", "--exclude", "[", "--", "true"], "storage.exclude: "),
        (["run", "--container-opt", "a=b", "--", "true"], "storage.container_opts: "),
        (["pull", "--into", "", "any"], "into: must not be empty; specify a folder"),
        (["delete", "--into", "", "any"], "into: must not be empty; specify a folder"),
    ],
)
def test_invalid_input(shell: Shell, args: list[str], words: str) -> None:
    result = shell(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: ")
    assert words in result.stderr
    command, *others = args
    as_json = shell(command, "--json", *others)
    assert (as_json.returncode, as_json.stderr) == (2, "")
    (row,) = map(json.loads, as_json.stdout.splitlines())
    assert (row["type"], row["error"]) == ("error", "InvalidInput")
    assert any(words in f"{p['path']}: {p['message']}" for p in row["problems"])
    assert shell.tasks() == []


def test_all_problems_are_told_at_once(shell: Shell) -> None:
    result = shell("run", "--parallelism", "0", "--timeout", "0", "--spot", "-3", "--", "true")
    assert result.returncode == 2
    for field in ("parallelism", "timeout", "spot"):
        assert f"{field}: " in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["logs", "--no-such-option"],
        ["delete"],
        ["completion", "csh"],
        ["run", "--parallelism", "many"],
    ],
)
def test_wrong_use(shell: Shell, args: list[str]) -> None:
    result = shell(*args)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Usage: sojourn" in result.stderr


@pytest.mark.parametrize(
    "name", ["status", "logs", "pull", "stop", "start", "interrupt", "delete", "read"]
)
def test_no_such_task(shell: Shell, name: str) -> None:
    result = shell(name, "tpi-no")
    assert (result.returncode, result.stdout) == (1, "")
    hint = (
        "Run `sojourn list` to see all tasks. "
        "Not searched (not set up on this computer): aws, gcp, az, k8s."
    )
    assert result.stderr == f"Error: Task tpi-no not found\n{hint}\n"
    (row,) = shell.rows(name, "tpi-no")
    assert row == {
        "type": "error",
        "error": "NotFound",
        "message": "Task tpi-no not found",
        "hint": hint,
        "problems": [],
    }


def test_a_home_that_cannot_be_used(shell: Shell) -> None:
    blocked = shell.cwd / "blocked"
    blocked.touch()
    shell.environment["XDG_DATA_HOME"] = str(blocked)
    result = shell("run", "--", "true")
    assert result.returncode == 2
    assert f"cannot write to {blocked}; make it writable" in result.stderr
    rows = shell.rows("run", "--", "true")
    assert (rows[-1]["type"], rows[-1]["error"]) == ("error", "InvalidInput")


def test_a_current_folder_that_was_deleted(shell: Shell) -> None:
    script = f'mkdir gone; cd gone; rmdir "$PWD"; exec {shlex.join(COMMAND)} run -- true'
    run = subprocess.run(
        ["sh", "-c", script],
        cwd=shell.cwd,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "Error: The current folder no longer exists\nChange to another folder.\n"


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: Shell, shell_name: str) -> None:
    script = shell.ok("completion", shell_name)
    assert "_SOJOURN_COMPLETE" in script
    program = shutil.which(shell_name)
    if program:
        checked = subprocess.run([program, "-n"], input=script, text=True, capture_output=True)
        assert checked.returncode == 0, checked.stderr


def _complete(shell: Shell, *words: str) -> list[str]:
    result = subprocess.run(
        COMMAND,
        env={
            **shell.environment,
            "_SOJOURN_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("sojourn", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.stderr == ""
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


def test_completion(shell: Shell) -> None:
    first, second = (shell.detached("true", "--name", name) for name in ("one", "two"))
    assert _complete(shell, "st") == ["status", "stop", "start"]
    assert _complete(shell, "status", "") == [first, second]
    assert _complete(shell, "status", "tpi-t") == [second]
    assert _complete(shell, "delete", first, "tpi-") == [first, second]
    assert "--timestamps" in _complete(shell, "logs", "--t")


def test_completion_without_a_shell_lists_them(shell: Shell) -> None:
    result = shell("completion")
    assert result.returncode == 2
    assert "\\t" not in result.stderr
    assert all(f"    {name}" in result.stderr for name in ("bash", "zsh", "fish"))
