"""Removing what scripts left, whatever its modes are."""

from __future__ import annotations

import os
import resource
import shutil
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


@pytest.mark.parametrize("depth", [1_100, 5_000], ids=["a stack", "a path"])
def test_trees_that_are_deeper_than(tmp_path: Path, depth: int) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    here = os.open(tree, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    os.close(os.open("file", os.O_CREAT, dir_fd=here))
    os.close(here)
    remove_tree(tree)
    assert not tree.exists()


def test_many_folders_take_few_descriptors(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for number in range(250):
        (tree / "wide" / str(number)).mkdir(parents=True)
    (tree / "/".join("d" * 200)).mkdir(parents=True)
    used = len(os.listdir("/dev/fd"))
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 16, limits[1]))
    try:
        remove_tree(tree)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not tree.exists()


def _in_own_mounts(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount: nobody else sees it, and it is gone at the end."""
    own = ["unshare", "--map-root-user", "--mount"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*own, "true"], capture_output=True).returncode
    ):
        pytest.skip("needs unshare and the right to mount: run the tests as root on Linux")
    command = [*own, "sh", "-ec", script, "sh", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


_BIND = 'mount --bind "$1/share" "$1/tree/our data"; '
_SHARED = 'mount -t tmpfs none "$1/share"; mount --make-shared "$1/share"; '
_INNER = 'mkdir "$1/share/inner"; mount -t tmpfs none "$1/share/inner"; '
_KEPT = 'touch "$1/share/inner/file"; '
_RBIND = 'mount --rbind "$1/share" "$1/tree/our data"; '
_PYTHON = f'"$2" -c "{_REMOVE}" "$1/tree"; '


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    """A share, and a tree that it is to be mounted in."""
    (tmp_path / "share").mkdir()
    (tmp_path / "share/file").write_text("not ours")
    (tmp_path / "tree/our data").mkdir(parents=True)
    (tmp_path / "tree/other").touch()
    return tmp_path


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_what_is_mounted_in_it_stays_as_it_is(mounted: Path, times: int) -> None:
    done = _in_own_mounts(_BIND * times + _PYTHON, str(mounted), sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert (mounted / "share/file").read_text() == "not ours"
    assert not (mounted / "tree").exists()


def test_what_is_mounted_in_a_share_stays_mounted_there(mounted: Path) -> None:
    script = _SHARED + _INNER + _KEPT + _RBIND + _PYTHON + 'ls "$1/share/inner"'
    done = _in_own_mounts(script, str(mounted), sys.executable)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "file\n")
    assert not (mounted / "tree").exists()


def test_nothing_is_removed_if_a_mount_cannot_be_unmounted(mounted: Path) -> None:
    bare = f"PATH=/nowhere; {_PYTHON}"
    done = _in_own_mounts(_BIND + bare, str(mounted), sys.executable)
    assert done.returncode == 1
    assert f"Could not unmount it ([Errno 2] No such file or directory: 'umount'): '{mounted}" in (
        done.stderr
    )
    assert "our data" in done.stderr.splitlines()[-1]
    assert (mounted / "share/file").read_text() == "not ours"
    assert (mounted / "tree/other").exists()
