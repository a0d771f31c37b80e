"""What a pull leaves in the store: what programs on this computer would run by themselves."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.trees import Dir, File, Link, Node
from tests.unit.storage.home import Home, new, write_tree_at

pytestmark = pytest.mark.usefixtures("tiny_limits", "quick_cooling")

_GIT: dict[str, Node] = {".git": Dir(), ".git/config": new(b"theirs")}


def _bare(folder: str, config: str = "") -> dict[str, Node]:
    return {
        folder: Dir(),
        f"{folder}/HEAD": new(b"ref: refs/heads/main\n"),
        f"{folder}/config": new(config.encode()),
        f"{folder}/objects": Dir(),
        f"{folder}/objects/pack": Dir(),
        f"{folder}/refs": Dir(),
        f"{folder}/refs/heads": Dir(),
    }


def test_a_repository_is_neither_created_nor_replaced(home: Home) -> None:
    home.push({})
    write_tree_at(home.into, {".git/config": File(b"mine")})
    home.rank({**_GIT, "sub": Dir(), "sub/.git": new(b"gitdir: x"), "a": new(b"1")})
    assert home.pull(".") == ["a"]
    assert home.files() == {".git/config": b"mine", "a": b"1"}
    [told] = home.warnings
    assert told.startswith("Not downloading 2 files that programs on this computer could run")
    assert ".git, sub/.git" in told


def test_it_comes_if_it_is_asked_for_by_name(home: Home) -> None:
    home.push({})
    home.rank(_GIT)
    assert home.pull(".git") == [".git/config"]
    assert home.pull(".git/config") == []
    assert home.warnings == []


def test_what_was_uploaded_and_not_changed_is_not_told_of(home: Home) -> None:
    home.push({".envrc": File(b"mine"), "a": File(b"old")})
    home.rank({".envrc": File(b"mine"), "a": new(b"new")})
    assert home.pull(".") == ["a"]
    assert home.warnings == []


@pytest.mark.parametrize("path", [".sojournignore", "sub/.sojournignore", ".zed/tasks.json"])
def test_a_machine_does_not_tell_what_is_uploaded_next_or_what_an_editor_runs(
    home: Home, path: str
) -> None:
    home.push({})
    folder = path.rpartition("/")[0]
    folders: dict[str, Node] = {folder: Dir()} if folder else {}
    home.rank({**folders, path: new(b"!.git\n"), "a": new(b"1")})
    assert home.pull(".") == ["a"]
    assert home.files() == {"a": b"1"}
    assert path.replace("/tasks.json", "") in home.warnings[0]


@pytest.mark.parametrize("output", [".", "out"])
def test_a_folder_that_git_takes_for_a_repository_does_not_become_one(
    home: Home, output: str
) -> None:
    home.push({})
    home.rank(_bare("out", "[core]\n\tfsmonitor = touch ran; false\n\tbare = false\n"))
    home.pull(output)
    assert (home.into / "out/objects").is_dir()
    assert _git_folder(home, "out") != "."
    assert "out/HEAD" in home.warnings[0]


def test_nor_does_one_that_comes_in_pieces(home: Home) -> None:
    home.push({})
    whole = _bare("out")
    head = {path: node for path, node in whole.items() if path in ("out", "out/HEAD")}
    home.rank(head)
    assert home.pull(".") == ["out/HEAD"]
    home.update(0, {path: node for path, node in whole.items() if path != "out/HEAD"})
    home.pull(".")
    assert _git_folder(home, "out") != "."


def test_one_whose_rest_is_in_another_folder_does_not_become_one(home: Home) -> None:
    home.push({})
    rest = {path: node for path, node in _bare("rest").items() if path != "rest/HEAD"}
    rest["rest/config"] = new(b"[core]\n\tpager = touch ran; cat\n")
    head = new(b"ref: refs/heads/main\n")
    out: dict[str, Node] = {"out": Dir(), "out/HEAD": head}
    home.rank({**rest, **out, "out/commondir": new(b"../rest")})
    home.pull(".")
    assert _git_folder(home, "out") != "."
    assert "out/HEAD, out/commondir" in home.warnings[0]


@pytest.mark.parametrize("name", ["config", "config.worktree", "hooks"])
def test_one_that_is_here_gets_nothing_that_git_would_run(home: Home, name: str) -> None:
    folders: dict[str, Node] = {"repo": Dir()}
    if name == "hooks":
        folders["repo/hooks"] = Dir()
    inside = "repo/hooks/post-checkout" if name == "hooks" else f"repo/{name}"
    here = _bare("repo", "[core]\n") | folders | {inside: File(b"mine")}
    home.push(here)
    write_tree_at(home.into, here)
    home.rank({**folders, inside: new(b"theirs")})  # and what makes it a repository is gone
    assert home.pull(".") == []
    assert home.files()[inside] == b"mine"
    assert f"repo/{name}" in home.warnings[0]


def test_a_symlink_to_a_repository_does_not_bring_it_under_another_name(home: Home) -> None:
    home.push({})
    moved = {path.replace("git", ".git", 1): node for path, node in _bare("git").items()}
    home.rank({**moved, "out": Link(".git")})
    home.pull("out")
    assert _git_folder(home, "out") != "."


def _git_folder(home: Home, folder: str) -> str:
    """What git takes for the repository of a folder; `.`: the folder itself."""
    found = subprocess.run(
        ["git", "rev-parse", "--git-dir"],
        cwd=home.into / folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip()
