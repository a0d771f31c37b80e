"""What people type after `sojourn run`: scripts, commands and their arguments."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.shell import Shell

_ECHO = "import json, sys; print(json.dumps(sys.argv[1:]))"
_SCRIPT = f"#!{sys.executable}\n{_ECHO}\n"
AWKWARD = [
    "a b",
    "",
    "it's",
    '"q"',
    "$HOME `x` \\n",
    "é☃",
    "-x",
    "*",
    "one\ntwo",
    "#",
    "--",
    "--lr",
]


def refused(shell: Shell, *args: str) -> str:
    result = shell("run", *args)
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert shell.tasks() == []
    return result.stderr


def suggested(shown: str) -> list[list[str]]:
    """The lines that a message says to type."""
    return [shlex.split(line)[1:] for line in re.findall(r"`(sojourn [^`]*)`", shown)]


@pytest.mark.parametrize("arguments", [["--lr", "0.1"], ["-x"], ["a", "--", "-d"], []])
def test_a_script_takes_the_rest_as_its_arguments(shell: Shell, arguments: list[str]) -> None:
    shell.file("train", _SCRIPT)
    assert json.loads(shell.ok("run", "train", *arguments)) == arguments


def test_arguments_of_a_script_arrive_as_they_were_given(shell: Shell) -> None:
    shell.file("train", _SCRIPT)
    assert json.loads(shell.ok("run", "train", "--", *AWKWARD)) == AWKWARD


def test_arguments_of_a_script_from_a_pipe(shell: Shell) -> None:
    result = shell("run", "-", "--lr", "0.1", input=_SCRIPT)
    assert json.loads(result.stdout) == ["--lr", "0.1"]


def test_a_command_on_the_path_takes_the_rest(shell: Shell) -> None:
    given = ["--lr", "0.1", "--output", "x", "--", "-d"]
    shown = shell.ok("run", os.path.basename(sys.executable), "-c", _ECHO, *given)
    assert json.loads(shown) == given


@pytest.mark.parametrize(
    ("option", "value"), [("--output", "results"), ("--name", "x"), ("-d", "")]
)
def test_an_option_after_a_script_is_ambiguous(shell: Shell, option: str, value: str) -> None:
    shell.file("train", _SCRIPT)
    typed = [option, *([value] if value else [])]
    shown = refused(shell, "--timeout", "1m", "train", "--lr", "1", *typed)
    assert f"arguments: {option} after train is ambiguous" in shown
    assert suggested(shown) == [
        ["run", "--timeout", "1m", *typed, "train", "--lr", "1"],
        ["run", "--timeout", "1m", "train", "--", "--lr", "1", *typed],
    ]
    assert json.loads(shell.ok(*suggested(shown)[1])) == ["--lr", "1", *typed]


@pytest.mark.parametrize("typed", [["--env", "A=secret"], ["-eA=secret"], ["--env=A=secret"]])
def test_suggestions_have_no_secrets(shell: Shell, typed: list[str]) -> None:
    shell.file("train", _SCRIPT)
    shown = refused(shell, *typed, "train", *typed)
    assert "secret" not in shown
    assert "A=..." in shown


def test_options_may_follow_a_task_file(shell: Shell) -> None:
    shell.file("train", _SCRIPT)
    shell.file("task.yaml", "script: {file: train}\narguments: [a, b]\n")
    assert json.loads(shell.ok("run", "task.yaml", "--timeout", "1m")) == ["a", "b"]
    assert json.loads(shell.ok("run", "task.yaml", "-t", "--", "-c", "d").partition(" ")[2]) == [
        "-c",
        "d",
    ]
    shown = refused(shell, "task.yaml", "--timeout", "1m", "--lr", "1")
    assert "unexpected '--lr' after task.yaml" in shown
    right = "sojourn run --timeout 1m task.yaml -- --lr 1"
    assert shown.endswith(f"Run `{right}` to pass it along.\n")


def test_a_command_whose_file_would_stay_here(shell: Shell) -> None:
    shell.file("train.py", "print('trained')")
    shown = refused(shell, "python3", "train.py", "--lr", "1")
    assert "storage.workdir: not set, so train.py would not be uploaded" in shown
    uploading, without = suggested(shown)
    assert uploading == ["run", "--workdir", ".", "python3", "train.py", "--lr", "1"]
    assert without == ["run", "--", "python3", "train.py", "--lr", "1"]
    assert shell.ok(*uploading) == "trained\n"
    asked = shell(*without)
    assert asked.returncode == 2
    assert "Warning: Not uploading without --workdir: train.py" in asked.stderr


def test_a_script_whose_argument_would_stay_here(shell: Shell) -> None:
    shell.file("train", _SCRIPT)
    shell.file("data.csv", "")
    shown = refused(shell, "train", "--data=data.csv")
    uploading, without = suggested(shown)
    assert uploading == ["run", "--workdir", ".", "train", "--data=data.csv"]
    assert json.loads(shell.ok(*without)) == ["--data=data.csv"]


def test_a_workdir_in_the_wrong_place(shell: Shell) -> None:
    shell.file("train.py", "print('trained')")
    shown = refused(shell, "python3", "train.py", "--workdir", ".")
    assert suggested(shown)[0] == ["run", "--workdir", ".", "python3", "train.py"]


def test_paths_are_relative_to_the_workdir(shell: Shell) -> None:
    shell.file("code/train.py", "print('trained')")
    shown = refused(shell, "--workdir", "code", "python3", "code/train.py")
    assert "storage.workdir: code/train.py not found in code" in shown
    [right] = suggested(shown)
    assert right == ["run", "--workdir", "code", "python3", "train.py"]
    assert shell.ok(*right) == "trained\n"
    shell.file("outside.txt", "")
    shown = refused(shell, "--workdir", "code", "cat", "outside.txt")
    assert suggested(shown) == [["run", "--workdir", "code", "--", "cat", "outside.txt"]]


def test_what_is_executable_in_the_workdir_is_a_command(shell: Shell) -> None:
    shell.file("code/tool", _SCRIPT).chmod(0o755)
    assert json.loads(shell.ok("run", "--workdir", "code", "tool", "--lr", "1")) == ["--lr", "1"]
    shell.file("code/plain", _SCRIPT)
    shown = refused(shell, "--workdir", "code", "plain", "x")
    assert suggested(shown) == [["run", "--workdir", "code", "code/plain", "x"]]


def test_a_program_is_no_script(shell: Shell) -> None:
    shutil.copy("/bin/echo", shell.cwd / "say")
    shown = refused(shell, "./say", "hello")
    assert "say would not be uploaded" in shown
    assert shell.ok("run", "--workdir", ".", "./say", "hello") == "hello\n"
    assert shell.ok("run", "/bin/echo", "hello") == "hello\n"


def test_a_script_wins_over_a_command_and_a_command_over_a_folder(shell: Shell) -> None:
    shell.file("echo", _SCRIPT)
    assert json.loads(shell.ok("run", "echo", "x")) == ["x"]
    (shell.cwd / "echo").unlink()
    (shell.cwd / "echo").mkdir()
    assert shell.ok("run", "echo", "x") == "x\n"


def test_a_script_without_its_first_line(shell: Shell) -> None:
    shell.file("train.py", "print('trained')")
    shown = refused(shell, "train.py", "--lr", "1")
    assert "must start with a shebang" in shown
    [right] = suggested(shown)
    assert right == ["run", "--workdir", ".", "python3", "train.py", "--lr", "1"]
    assert shell.ok(*right) == "trained\n"


def test_a_command_that_is_not_here_may_be_on_the_machine(shell: Shell) -> None:
    shown = refused(shell, "no-such-program", "-x")
    assert "script: no-such-program not found" in shown
    assert suggested(shown) == [["run", "--", "no-such-program", "-x"]]


def test_a_script_with_windows_line_endings_is_mended_by_the_command_that_is_told(
    shell: Shell,
) -> None:
    script = shell.file("my train.sh", "#!/bin/sh\r\necho hi\r\n")
    shown = refused(shell, "my train.sh")
    assert "has Windows line endings (CRLF), which its program reads as part of words" in shown
    [command] = re.findall("run `(sed [^`]*)`", shown)
    subprocess.run(["sh", "-c", command], cwd=shell.cwd, check=True)
    assert script.read_bytes() == b"#!/bin/sh\necho hi\n"
    assert shell.ok("run", "my train.sh") == "hi\n"


def test_a_mistyped_script(shell: Shell) -> None:
    shell.file("train.sh", _SCRIPT)
    assert "trian.sh not found\nDid you mean train.sh?" in refused(shell, "trian.sh")
    shell.file("my train.sh", _SCRIPT)
    assert "my trian.sh not found\nDid you mean my train.sh?" in refused(shell, "my trian.sh")


@pytest.mark.parametrize("dashes", [[], ["--"]])
def test_a_line_of_a_shell_in_quotes(shell: Shell, dashes: list[str]) -> None:
    """What is suggested runs as it would in a shell, or says what else to add."""
    shell.file("in.txt", "one\n")
    asked = {
        "echo one && echo two": ["--", "sh", "-c", "echo one && echo two"],
        "echo  one": [*dashes, "echo", "one"],
        "A=one env": ["--", "sh", "-c", "A=one env"],
        "echo>/dev/null": ["--", "sh", "-c", "echo>/dev/null"],
        "cat < in.txt": ["--workdir", ".", "--", "sh", "-c", "cat < in.txt"],
    }
    for line, words in asked.items():
        shown = refused(shell, *dashes, line)
        assert f"command: no program is named {line!r}\n" in shown
        assert suggested(shown) == [["run", *words]]
    for words in asked.values():
        shell.ok("run", "--no-output", *words)


def test_a_machine_type_that_no_cloud_has(shell: Shell) -> None:
    shown = refused(shell, "--machine", "xxl", "true")
    assert "machine: unknown machine type 'xxl'; sizes are s, m, l, xl" in shown


def test_all_that_is_wrong_with_options_at_once(shell: Shell) -> None:
    shown = refused(shell, "--output", "../x", "--timeout", "soon", "--parallelism", "0", "true")
    assert all(f"{field}: " in shown for field in ("storage.output", "timeout", "parallelism"))


def test_an_env_file(shell: Shell, tmp_path: Path) -> None:
    shell.file(".env", "A=file\nB='b #1' # note\nexport C=c\n")
    shell.file("more.env", "A=more\n")
    shown = shell.ok(
        *("run", "--env-file", ".env", "--env-file", "more.env", "--env", "C=option"),
        *("sh", "-c", 'echo "$A|$B|$C"'),
    )
    assert shown == "more|b #1|option\n"
    shell.file(".env", "A=1\nno-secret-here\n")
    shown = refused(shell, "--env-file", ".env", "true")
    assert ".env:2: " in shown
    assert "secret" not in shown
    assert "nowhere.env: could not read file" in refused(shell, "--env-file", "nowhere.env", "true")


def test_create_takes_arguments_too(shell: Shell) -> None:
    shell.file("train", _SCRIPT)
    task = shell.ok("create", "train", "--lr", "1").strip()
    assert json.loads(shell.ok("logs", "--follow", task)) == ["--lr", "1"]


def test_without_a_shebang_it_is_told_as_well(shell: Shell) -> None:
    shell.file("train.sh", "if true; then\r\n  echo hi\r\nfi\r\n")
    shown = refused(shell, "train.sh")
    [fix, then] = re.findall("`([^`]*)`", shown)
    subprocess.run(["sh", "-c", fix], cwd=shell.cwd, check=True)
    assert shell.ok(*shlex.split(then)[1:], "--no-output") == "hi\n"
    shell.file("train.py", "if True:\r\n  print('hi')\r\n")  # which Python reads as it is
    assert suggested(refused(shell, "train.py")) == [
        ["run", "--workdir", ".", "python3", "train.py"]
    ]
