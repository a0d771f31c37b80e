"""What is said of files beside a script that are not uploaded, as there is no workdir."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sojourn.cli.commandline import Typed
from sojourn.cli.unsent import told_of_unsent
from sojourn.core.task import Task
from tests.unit.cli.shell import Shell

_SCRIPT = "#!/bin/sh\nls\n"


@pytest.fixture
def project(shell: Shell) -> Shell:
    shell.file("train.sh", "#!/bin/sh\nwc -l < data.csv\n")
    for name in ("a.txt", "data.csv", "model/x"):
        shell.file(name, "")
    return shell


def _told(shell: Shell, *args: str) -> list[str]:
    result = shell("run", "--dry-run", *args)
    assert result.returncode == 0, result.stderr
    return [line for line in result.stderr.splitlines() if line.startswith("Not uploading")]


def test_a_script_is_told_of_what_stays_beside_it(project: Shell) -> None:
    assert _told(project, "train.sh", "--lr", "0.1") == [
        "Not uploading this folder: 3 files and folders, such as data.csv and a.txt, are not "
        "available to the script. Add `--workdir .` to upload, "
        "as in `sojourn run --dry-run --workdir . train.sh --lr 0.1`"
    ]


def test_the_way_that_is_told_is_the_way(project: Shell) -> None:
    project.file("train.sh", _SCRIPT)
    assert project.ok("run", "train.sh") == ""
    assert project.ok("run", "--workdir", ".", "--no-output", "train.sh").split() == [
        *("a.txt", "data.csv", "model", "train.sh")
    ]


def test_the_folder_of_the_script_comes_first(project: Shell) -> None:
    project.file("code/train.sh", _SCRIPT)
    project.file("code/lib.sh", "")
    [told] = _told(project, "code/train.sh")
    assert told.startswith("Not uploading code: lib.sh is not available to the script.")
    assert "Add `--workdir code` to upload" in told


@pytest.mark.parametrize(
    "args",
    [
        ("--workdir", ".", "train.sh"),
        ("--workdir", "", "train.sh"),
        ("--", "sh", "-c", "ls"),
        ("ls",),
    ],
)
def test_nothing_is_told_if_it_was_said_or_if_there_is_no_script(
    project: Shell, args: tuple[str, ...]
) -> None:
    assert _told(project, *args) == []


def test_nothing_is_told_of_a_folder_that_is_empty_but_for_the_script(shell: Shell) -> None:
    shell.file("train.sh", _SCRIPT)
    for name in (".env", ".git/config", "node_modules/x", "__pycache__/x", "main.tf"):
        shell.file(name, "")
    assert _told(shell, "train.sh") == []


def test_links_that_lead_nowhere_do_no_harm(shell: Shell) -> None:
    shell.file("train.sh", "#!/bin/sh\necho hi\n")
    (shell.cwd / "dangling").symlink_to("nowhere")
    (shell.cwd / "looping").symlink_to("looping")
    (shell.cwd / "again.sh").symlink_to("train.sh")  # the script itself
    assert _told(shell, "train.sh") == []
    shell.file("data.csv", "")
    [told] = _told(shell, "train.sh")
    assert told.startswith("Not uploading this folder: data.csv is not available")
    assert shell.ok("run", "train.sh") == "hi\n"


def test_a_file_that_is_removed_meanwhile_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("train.sh", "data.csv", "other.csv"):
        (tmp_path / name).write_text(_SCRIPT)
    listed = os.scandir

    def scandir(folder: str) -> list[os.DirEntry[str]]:
        found = list(listed(folder))
        (tmp_path / "other.csv").unlink()
        return found

    monkeypatch.setattr(os, "scandir", scandir)
    words = (str(tmp_path / "train.sh"),)
    told = told_of_unsent(Typed("run", words, words), Task(script=_SCRIPT), from_file=False)
    assert "data.csv is not available" in told


def test_nobody_is_told_to_upload_a_home(project: Shell) -> None:
    project.environment["HOME"] = str(project.cwd)
    assert _told(project, "train.sh") == []


@pytest.mark.parametrize(
    ("script", "told"),
    [("python3 train.py", 1), ("python3 x/train.py", 0), ("echo hello", 0), ("./train.pyc", 0)],
)
def test_a_task_file_is_told_of_what_its_script_names(shell: Shell, script: str, told: int) -> None:
    for name in ("train.py", "other.txt"):
        shell.file(name, "")
    shell.file("task.yaml", f"script: |\n  #!/bin/sh\n  {script}\n")
    assert len(_told(shell, "task.yaml")) == told
    assert _told(shell, "--workdir", ".", "task.yaml") == []
