from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from sojourn.engine.revision import COMMIT, DIRTY, revision

_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, env=_ENVIRONMENT, capture_output=True, check=True
    )
    return ran.stdout.decode().strip()


def seen(folder: Path, **more: str) -> Mapping[str, str]:
    return revision(folder, {**_ENVIRONMENT, **more})


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with one commit, and a folder in it."""
    top = tmp_path / "top"
    (top / "work").mkdir(parents=True)
    (top / "work/a").write_text("1")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    return top


def test_a_clean_tree(tree: Path) -> None:
    expected = {COMMIT: git(tree, "rev-parse", "HEAD"), DIRTY: "false"}
    assert seen(tree) == expected
    assert seen(tree / "work") == expected
    (tree / "work/new").write_text("not tracked")
    assert seen(tree) == expected


def test_a_changed_file_makes_it_dirty_staged_or_not(tree: Path) -> None:
    (tree / "work/a").write_text("2, and longer")
    assert seen(tree)[DIRTY] == "true"
    git(tree, "add", ".")
    assert seen(tree)[DIRTY] == "true"
    git(tree, "commit", "-qm", "second")
    assert seen(tree) == {COMMIT: git(tree, "rev-parse", "HEAD"), DIRTY: "false"}


def test_nothing_without_a_repository_a_commit_or_git(tree: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert seen(fresh) == {}
    git(fresh, "init", "-q")
    assert seen(fresh) == {}
    (fresh / ".git/HEAD").write_text("damaged")
    assert seen(fresh) == {}
    assert seen(tree, PATH="/nonexistent") == {}


def test_a_worktree_has_a_commit_of_its_own(tree: Path, tmp_path: Path) -> None:
    git(tree, "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    git(tmp_path / "other", "commit", "-q", "--allow-empty", "-m", "there")
    assert seen(tmp_path / "other")[COMMIT] == git(tmp_path / "other", "rev-parse", "HEAD")
    assert seen(tmp_path / "other") != seen(tree)


def test_the_variables_of_a_hook_do_not_lead_elsewhere(tree: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "elsewhere")
    assert seen(tree, GIT_DIR=str(tmp_path / "elsewhere/.git")) == seen(tree)


@pytest.mark.parametrize("config", ["system", "worktree"])
def test_nothing_runs_that_the_repository_names(tree: Path, tmp_path: Path, config: str) -> None:
    ran = tmp_path / "ran"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    trap.chmod(0o755)
    (tree / ".gitattributes").write_text("* filter=one filter=two.x\n*.t filter=lfs\n")
    (tree / "work/b.t").write_text("1")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "second")
    if config == "worktree":
        git(tree, "config", "extensions.worktreeConfig", "true")
    place = ["--worktree"] if config == "worktree" else ["--local"]
    settings = {
        "core.fsmonitor": str(trap),
        "core.hooksPath": str(tmp_path / "hooks"),
        "filter.two.x.clean": str(trap),
        "filter.two.x.required": "true",
        "filter.lfs.process": str(trap),
        "filter.lfs.clean": str(trap),
        "core.sshCommand": str(trap),
        "core.pager": str(trap),
    }
    for key, value in settings.items():
        git(tree, "config", *place, key, value)
    (tmp_path / "hooks").mkdir()
    for folder in (tmp_path / "hooks", tree / ".git/hooks"):
        (folder / "post-index-change").symlink_to(trap)
    for name in ("a", "b.t"):
        (tree / "work" / name).write_text("2")
        os.utime(tree / "work" / name, (1, 1))
    assert seen(tree)[DIRTY] == "true"
    assert not ran.exists()
    git(tree, "status")  # the traps are real
    assert ran.exists()


def test_a_filter_that_cannot_be_turned_off_leaves_it_open(tree: Path) -> None:
    with (tree / ".git/config").open("a") as file:
        file.write('[filter "a=b"]\n\tclean = false\n')
    assert seen(tree) == {COMMIT: git(tree, "rev-parse", "HEAD")}
