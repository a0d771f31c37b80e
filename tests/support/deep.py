"""Trees that are deeper than a path can be long, and files in folders that move away."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sojourn.agent.disk import remove_tree

__all__ = ["depth_of", "exchange", "make_deep", "removed"]


def make_deep(root: Path, depth: int) -> None:
    """Folders in folders, with a file in each that tells how deep it is."""
    here = os.open(root, os.O_RDONLY)
    for number in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
        file = os.open("f", os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=here)
        os.write(file, b"%d" % number)
        os.close(file)
    os.close(here)


def depth_of(root: Path) -> int:
    """How deep such a tree is; wrong contents end it."""
    here = os.open(root, os.O_RDONLY)
    depth = 0
    with suppress(FileNotFoundError):
        while True:
            inner = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inner
            file = os.open("f", os.O_RDONLY, dir_fd=here)
            content = os.read(file, 100)
            os.close(file)
            if content != b"%d" % depth:
                break
            depth += 1
    os.close(here)
    return depth


def removed(folder: Path) -> Callable[[], None]:
    """A clean-up: what pytest would do recurses."""
    return lambda: remove_tree(folder)


def exchange(folder: Path, outside: Path) -> None:
    """Move a folder away, and have a symlink to another one in its place."""
    folder.rename(folder.with_name(f"{folder.name}-moved"))
    folder.symlink_to(outside)
