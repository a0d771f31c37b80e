"""Removing what scripts left, whatever its modes are."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sojourn.agent.disk import remove_tree
from tests.support.privileges import stopped_by_modes

_REMOVE = "import sys, pathlib, sojourn.agent.disk as d; d.remove_tree(pathlib.Path(sys.argv[1]))"


def _remove(folder: Path) -> str:
    """Remove it as somebody whom modes stop; what went wrong."""
    command = [*stopped_by_modes(), sys.executable, "-c", _REMOVE, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("mode", [0o755, 0o555, 0o444, 0o000], ids=oct)
def test_folders_that_allow_nothing_are_removed(tmp_path: Path, mode: int) -> None:
    tree = tmp_path / "tree"
    (tree / "a/b/c").mkdir(parents=True)
    for folder in (tree, tree / "a", tree / "a/b", tree / "a/b/c"):
        (folder / "file").write_text("content")
        (folder / "file").chmod(0o000)
    for folder in (tree / "a/b/c", tree / "a/b", tree / "a", tree):
        folder.chmod(mode)
    assert _remove(tree) == ""
    assert not tree.exists()


@pytest.mark.parametrize("whole", [False, True], ids=["in it", "itself"])
def test_what_symlinks_lead_to_stays_as_it_is(tmp_path: Path, whole: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("not ours")
    (elsewhere / "folder").mkdir()
    (elsewhere / "folder").chmod(0o750)
    elsewhere.chmod(0o555)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(elsewhere)
    (tree / "dangling").symlink_to("nowhere")
    if whole:
        tree = tree / "link"
    assert _remove(tree) == ""
    assert not os.path.lexists(tree)
    assert (elsewhere / "folder").stat().st_mode & 0o777 == 0o750
    assert elsewhere.stat().st_mode & 0o777 == 0o555
    assert (elsewhere / "file").read_text() == "not ours"
    elsewhere.chmod(0o755)


def test_what_is_absent_is_no_error(tmp_path: Path) -> None:
    assert _remove(tmp_path / "absent") == ""


def test_several_may_remove_the_same_at_once(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number in range(300):
        (tree / f"{number}/deeper").mkdir(parents=True)
        (tree / f"{number}/deeper/file").touch()
    with ThreadPoolExecutor(4) as removers:
        list(removers.map(remove_tree, [tree] * 4))
    assert not tree.exists()
