"""Trees of files: made at random, written to a folder, read back, compared."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sojourn.storage.manifest import safe_target

__all__ = [
    "Dir",
    "File",
    "Link",
    "Tree",
    "files_below",
    "read_tree",
    "rewrite_tree",
    "trees",
    "write_tree",
]

_OLD = 1_500_000_000_000_000_000  # ns: long ago, so that times tell trees apart


@dataclass(frozen=True)
class File:
    """`content` as one byte repeated and a tail, so that failing examples stay readable."""

    content: bytes
    mode: int = 0o644
    mtime: int = _OLD


@dataclass(frozen=True)
class Dir:
    """A folder."""

    mode: int = 0o755


@dataclass(frozen=True)
class Link:
    """A symlink."""

    target: str


Node = File | Dir | Link
Tree = Mapping[str, Node]

_ODD_NAMES = (
    "\n",
    "..\n",
    "a\n",
    "-rf",
    "--",
    "...",
    " ",
    "a b",
    "é",
    "e\u0301",
    "日本",
    "\udcff",
    "\udcc3(",
    "a\\b",
    "*",
    "~",
    "$HOME",
    "'\"",
    "x" * 255,
    ".hidden",
    "con",
    "\x7f\x01",
    "a.rank1",
    "f.local",
)
_NAMES = st.sampled_from(("a", "b", "c", "d")) | st.sampled_from(_ODD_NAMES)
_MODES = st.sampled_from((0o644, 0o600, 0o755, 0o444, 0o400, 0o777))
_DIR_MODES = st.sampled_from((0o755, 0o700, 0o500, 0o777))


@st.composite
def trees(draw: st.DrawFn, *, small: int, chunk: int, at_most: int = 12) -> dict[str, Node]:
    """Random trees with sizes around the limits of what is packed and what is cut."""
    sizes = st.sampled_from(
        (0, 1, small - 1, small, small + 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 5)
    )
    tree: dict[str, Node] = {}
    folders = [""]
    for _ in range(draw(st.integers(0, at_most))):
        folder = draw(st.sampled_from(folders))
        path = f"{folder}/{draw(_NAMES)}" if folder else draw(_NAMES)
        if path in tree:
            continue
        node: Node
        kind = draw(st.sampled_from("ffffdl"))
        if kind == "d":
            node = Dir(draw(_DIR_MODES))
            folders.append(path)
        elif kind == "l":
            target = draw(st.sampled_from(("a", "./b", "../a", "..", "a/b", "\udcff", "missing\n")))
            node = Link(target if safe_target(path, target) else "a")
        else:
            fill = draw(st.sampled_from(b"\0ab"))
            content = bytes([fill]) * draw(sizes)
            tail = draw(st.binary(max_size=3))
            node = File(
                content[: len(content) - len(tail)] + tail if len(content) > 3 else content,
                draw(_MODES),
                _OLD + draw(st.integers(0, 3)) * 1_000_000_001,
            )
        tree[path] = node
    return tree


def write_tree(root: Path, tree: Tree) -> None:
    """Make a folder hold exactly this; it must be empty."""
    for path, node in tree.items():
        target = os.path.join(root, path)
        if isinstance(node, Dir):
            os.mkdir(target)
        elif isinstance(node, Link):
            os.symlink(node.target, target)
        else:
            with open(target, "wb") as file:
                file.write(node.content)
            os.chmod(target, node.mode)
            os.utime(target, ns=(node.mtime, node.mtime))
    for path, node in reversed(list(tree.items())):
        if isinstance(node, Dir):
            os.chmod(os.path.join(root, path), node.mode)


def rewrite_tree(root: Path, old: Tree, new: Tree) -> None:
    """Turn a folder from one tree into another; what is the same is not touched."""
    for path, node in old.items():
        if isinstance(node, Dir):
            os.chmod(os.path.join(root, path), 0o700)
    for path in reversed(list(old)):
        target = os.path.join(root, path)
        if new.get(path) == old[path] or not os.path.lexists(target):
            continue
        if isinstance(old[path], Dir):
            if not isinstance(new.get(path), Dir):
                shutil.rmtree(target)
        else:
            os.unlink(target)
    missing = {
        path: node for path, node in new.items() if not os.path.lexists(os.path.join(root, path))
    }
    write_tree(root, missing)
    for path, node in reversed(list(new.items())):
        if isinstance(node, Dir):
            os.chmod(os.path.join(root, path), node.mode)


def read_tree(root: Path, *, folder_times: bool = False) -> dict[str, Any]:
    """All that a snapshot must bring back, by path."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                times = (info.st_mtime_ns,) if folder_times else ()
                found[key] = ("dir", info.st_mode & 0o777, *times)
            else:
                with open(path, "rb") as file:
                    content = file.read()
                found[key] = ("file", info.st_mode & 0o777, info.st_mtime_ns, content)
    return found


def files_below(folder: Path) -> Iterator[Path]:
    """All files, while programs may remove folders among them."""
    for top, _, names in os.walk(folder):
        yield from (Path(top, name) for name in names)
