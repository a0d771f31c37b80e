"""Removing what scripts left on a disk."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_tree"]

_TRIES = 100


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, also in folders that allow no writing; absent: nothing."""
    for _ in range(_TRIES):
        try:
            return _remove(folder)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
                raise  # else somebody removes it as well, or writes to it
    return _remove(folder)


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()  # what it leads to is not ours
    if not folder.exists():
        return
    os.chmod(folder, 0o700)
    for parent, names, _ in os.walk(folder):  # from the top: each is opened before it is entered
        for name in names:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(folder)
