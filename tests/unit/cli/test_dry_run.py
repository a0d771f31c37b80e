"""What goes up, told before it does; and `--dry-run`."""

from __future__ import annotations

import os

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


def test_a_dry_run_of_a_task_that_exists(shell: Shell) -> None:
    task = shell.detached("exit 0", "--name", "twice")
    shown = shell.ok("run", "--dry-run", "--name", "twice", "true")
    assert f"Would resume {task}, which already exists on local" in shown


def test_a_large_upload_is_told_with_what_would_halve_it(shell: Shell) -> None:
    big(shell, ".venv/lib/torch.so", 60)
    big(shell, "data/a.bin", 2)
    result = shell("run", "--workdir", ".", "true")
    lines = result.stderr.splitlines()
    told = "Uploading 2 files, 62 MiB; largest: .venv 60 MiB, data 2.0 MiB"
    assert lines[lines.index("Uploading workdir") + 1] == told
    assert "To upload 1 file, 2.0 MiB instead, add .venv/ to .sojournignore." in lines
    assert "add .venv/ to .sojournignore" in shell.ok("run", "--dry-run", "--workdir", ".", "true")
    shell.file(".sojournignore", ".venv/\n")
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
    big(shell, ".git/pack", 20)
    shown = shell.ok("run", "--dry-run", "--workdir", ".", "true")
    assert "Would upload 2 files, 80 MiB" in shown
    assert "To upload" not in shown
