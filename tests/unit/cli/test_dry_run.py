"""What goes up, told before it does; and `--dry-run`."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.unit.cli.shell import Shell


def big(shell: Shell, name: str, megabytes: int) -> None:
    """A file that looks large, and takes no room here."""
    path = shell.file(name, "")
    os.truncate(path, megabytes << 20)


def test_a_dry_run_leaves_nothing_behind(shell: Shell) -> None:
    shell.file("train.sh", "#!/bin/sh\ntouch ran\n")
    shell.file("data/a.csv", "x" * 2048)
    shell.file("junk.pyc", "")
    shell.file("notes/x", "")
    shell.file(".sojournignore", "notes/\n")
    before = sorted(shell.cwd.rglob("*"))
    result = shell("run", "--dry-run", "--workdir", ".", "--exclude", "*.pyc", "train.sh", "--lr")
    assert (result.returncode, result.stderr) == (0, "")
    first, *others = result.stdout.splitlines()
    assert first == "Would upload 3 files, 2.0 KiB from ."
    assert others[0].split() == ["2.0", "KiB", "data"]
    assert "Would exclude junk.pyc, notes" in others
    assert "Would create on local" in others
    assert others[-1] == "Dry run: nothing created."
    assert any(line.endswith("ID/store") for line in others)
    assert sorted(shell.cwd.rglob("*")) == before
    assert list(shell.home.iterdir()) == []


def test_a_dry_run_refuses_what_could_not_be_created(shell: Shell) -> None:
    result = shell("run", "--dry-run", "--workdir", "nowhere", "true")
    assert result.returncode == 2
    assert "storage.workdir: " in result.stderr


_MIXED = """
resource "iterative_task" "task" {
  cloud  = "local"
  script = "#!/bin/sh"
}
resource "iterative_machine" "dev" {
  cloud = "local"
}
resource "iterative_cml_runner" "ci" {
  cloud = "local"
}
"""


@pytest.mark.parametrize("verb", [("run", "--dry-run"), ("run",), ("create", "--dry-run")])
def test_what_a_file_has_beside_tasks_is_named_with_its_verb(
    shell: Shell, verb: tuple[str, ...]
) -> None:
    shell.file("main.tf", _MIXED)
    said = shell(*verb, "main.tf")
    assert said.returncode == 0
    for address, other in (
        ("iterative_machine.dev", "sojourn machine create"),
        ("iterative_cml_runner.ci", "sojourn runner launch"),
    ):
        note = f"Ignoring {address}: run `{other}` or `terraform apply` to create it"
        assert said.stderr.count(note) == 1


def test_a_dry_run_of_a_task_that_exists(shell: Shell) -> None:
    task = shell.detached("exit 0", "--name", "twice")
    shown = shell.ok("run", "--dry-run", "--name", "twice", "true")
    assert f"Would resume {task}, which already exists on local" in shown


def test_a_large_upload_is_told_with_what_would_halve_it(shell: Shell) -> None:
    big(shell, "venv/lib/torch.so", 60)
    big(shell, "data/a.bin", 2)
    result = shell("run", "--workdir", ".", "true")
    lines = result.stderr.splitlines()
    told = "Uploading 2 files, 62 MiB; largest: venv 60 MiB, data 2.0 MiB"
    assert lines[1] == told
    assert "To upload 1 file, 2.0 MiB instead, add venv/ to .sojournignore." in lines
    assert "add venv/ to .sojournignore" in shell.ok("run", "--dry-run", "--workdir", ".", "true")
    shell.file(".sojournignore", "venv/\n")
    quiet = shell("run", "--workdir", ".", "true").stderr
    assert "largest" not in quiet
    assert "To upload" not in quiet


def test_git_knows_what_would_halve_it(shell: Shell) -> None:
    big(shell, "data/a.bin", 60)
    shell.file(".gitignore", "data/\n")
    shown = shell.ok("run", "--dry-run", "--workdir", ".", "true")
    assert "To upload 1 file, 6 B instead, use `--gitignore`." in shown
    shown = shell.ok("run", "--dry-run", "--gitignore", "--workdir", ".", "true")
    assert "To upload" not in shown


def test_nothing_is_suggested_that_would_not_halve_it(shell: Shell) -> None:
    big(shell, "data/a.bin", 60)
    big(shell, "venv/pack", 20)
    shown = shell.ok("run", "--dry-run", "--workdir", ".", "true")
    assert "Would upload 2 files, 80 MiB" in shown
    assert "To upload" not in shown


def test_what_is_not_uploaded_by_default_is_told_with_how_much_it_is(shell: Shell) -> None:
    big(shell, ".venv/lib/torch.so", 60)
    shell.file("web/node_modules/x.js", "")
    shell.file("a.txt", "")
    told = (
        "Not uploading .venv, web/node_modules (2 files, 60 MiB); "
        "use `--no-default-ignore` to upload everything"
    )
    listing = ("sh", "-c", "find . -type f | sort")
    result = shell("run", "--workdir", ".", "--no-output", *listing)
    assert result.stdout.splitlines() == ["./a.txt"]
    assert result.stderr.splitlines().count(told) == 1
    dry = shell("run", "--dry-run", "--workdir", ".", "true")
    assert "Would upload 1 file, 0 B" in dry.stdout
    assert told in dry.stderr.splitlines()
    result = shell("run", "--workdir", ".", "--no-default-ignore", "--no-output", *listing)
    assert result.stdout.splitlines() == [
        "./.venv/lib/torch.so",
        "./a.txt",
        "./web/node_modules/x.js",
    ]
    assert "Not uploading" not in result.stderr


def test_a_file_of_secrets_is_named_when_it_is_uploaded(shell: Shell) -> None:
    for name in (".env", "api/.env.local", ".env.example", "my.env", ".environment"):
        shell.file(name, "")
    told = (
        "Warning: Uploading .env, api/.env.local, which may hold secrets; "
        "add to .sojournignore to leave out"
    )
    assert told in shell("run", "--workdir", ".", "true").stderr.splitlines()
    shell.file(".sojournignore", ".env\n.env.local\n")
    assert "may hold" not in shell("run", "--workdir", ".", "true").stderr


def test_many_files_are_not_counted_to_the_last(shell: Shell) -> None:
    folder = shell.cwd / "node_modules"
    folder.mkdir()
    for number in range(10_001):
        (folder / f"{number}").touch()
    result = shell("run", "--dry-run", "--workdir", ".", "true")
    assert "Not uploading node_modules (more than 10,000 files)" in result.stderr


def test_a_script_knows_the_revision_of_its_workdir(shell: Shell) -> None:
    shell.file("code/a", "1")
    identity = ("-c", "user.name=x", "-c", "user.email=x")
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=shell.cwd, env=shell.environment, check=True)
    ask = ("sh", "-c", "echo $SOJOURN_GIT_COMMIT $SOJOURN_GIT_DIRTY; ls -A")
    head = ["git", "rev-parse", "HEAD"]
    commit = subprocess.check_output(head, cwd=shell.cwd, text=True).strip()
    first, *listed = shell.ok("run", "--workdir", "code", *ask).splitlines()
    assert (first, listed) == (f"{commit} false", ["a"])
    shell.file("code/a", "2, and longer")
    assert shell.ok("run", "--workdir", ".", *ask).splitlines() == [f"{commit} true", "code"]
    assert shell.ok("run", *ask).strip() == ""
    mine = ("--env", "SOJOURN_GIT_COMMIT=mine")
    assert shell.ok("run", "--workdir", ".", *mine, *ask).splitlines()[0] == "mine true"
