"""Removing what scripts left on a disk, however deep and with whatever modes, but no mounts."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.storage.beneath import is_elsewhere, let_in
from sojourn.storage.files import open_folder

__all__ = ["remove_tree"]

_TRIES = 100
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FOLDERS_AT_ONCE = 100  # names of folders kept of each level; there may be millions
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_UNMOUNT_WITHIN = 60.0  # seconds; a share whose server is gone may hang


def remove_tree(folder: Path) -> None:
    """Remove a folder and all in it, also in folders that allow no writing; absent: nothing.

    What is mounted in it is unmounted first, or nothing is removed: a share is not ours.
    """
    for _ in range(_TRIES):
        try:
            return _remove(folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY and not is_elsewhere(error):
                raise  # else somebody removes it as well, or writes to it
    return _remove(folder)


def _remove(folder: Path) -> None:
    try:
        above = open_folder(str(folder.absolute().parent))
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        _remove_within(above, folder)
    finally:
        os.close(above)


def _remove_within(above: int, folder: Path) -> None:
    name = folder.absolute().name
    try:
        info = os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(info.st_mode):
        os.unlink(name, dir_fd=above)  # what a symlink leads to is not ours
        return
    _unmount(folder)
    _empty(above, name)
    os.rmdir(name, dir_fd=above)


@dataclass
class _Level:
    """A folder that is being emptied: its name in the one above, and what is to do in it."""

    name: str
    identity: tuple[int, int]
    folders: list[str] = field(default_factory=list)


def _empty(above: int, folder: str) -> None:
    """Remove all in a folder, with one descriptor and no recursion.

    A script can make trees that are deeper than a path can be long, or a stack high.
    """
    here = _open(folder, above)
    levels = [_Level("", _identity(here))]
    try:
        while levels:
            level = levels[-1]
            level.folders = level.folders or _remove_files(here)
            if level.folders:
                name = level.folders.pop()
                with suppress(FileNotFoundError):  # else somebody removes it as well
                    here = _swapped(here, _open(name, here))
                    levels.append(_Level(name, _identity(here)))
                continue
            levels.pop()
            if levels:
                here = _swapped(here, os.open("..", _FOLDER, dir_fd=here))
                if _identity(here) != levels[-1].identity:
                    raise FileNotFoundError(errno.ENOENT, "Moved by another process", level.name)
                with suppress(FileNotFoundError):
                    os.rmdir(level.name, dir_fd=here)
    finally:
        os.close(here)


def _remove_files(here: int) -> list[str]:
    """Remove what is no folder; gives some of the folders, or none if there are none left."""
    folders: list[str] = []
    with os.scandir(here) as items:
        for item in items:
            if item.is_dir(follow_symlinks=False):
                folders.append(item.name)
                if len(folders) == _FOLDERS_AT_ONCE:
                    break
            else:
                with suppress(FileNotFoundError):
                    os.unlink(item.name, dir_fd=here)
    return folders


def _swapped(here: int, there: int) -> int:
    os.close(here)
    return there


def _open(name: str, within: int) -> int:
    """Open a folder, and have it allow all that is needed to empty it."""
    try:
        opened = os.open(name, _FOLDER, dir_fd=within)
    except PermissionError:
        let_in(within, name)
        opened = os.open(name, _FOLDER, dir_fd=within)
    if os.fstat(opened).st_mode & 0o700 != 0o700:
        try:
            os.fchmod(opened, 0o700)
        except OSError:
            os.close(opened)
            raise
    return opened


def _identity(opened: int) -> tuple[int, int]:
    info = os.fstat(opened)
    return info.st_dev, info.st_ino


def _unmount(folder: Path) -> None:
    """Unmount what is mounted in a folder.

    The outermost goes first and takes along, in one step, what is mounted in it. Before, these are
    cut off from what they were bound from: else what is unmounted here would be there as well.
    """
    while mounts := _mounts(folder):
        outermost = min(mounts, key=len)
        if os.geteuid() == 0:  # anybody else can have mounted nothing that has others in it
            _run("mount", "--make-rprivate", outermost)
        problem = _run("umount", "-l", outermost)
        if problem and outermost in _mounts(folder):
            raise OSError(
                errno.EBUSY,
                f"Could not unmount it ({problem})",
                outermost,
            )


def _mounts(folder: Path) -> list[str]:
    """Where something is mounted on or below a folder; nothing where the system does not tell."""
    root = os.path.realpath(folder)
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return []
    points = [os.fsdecode(_ESCAPE.sub(_unescaped, line.split(b" ")[4])) for line in lines]
    return [point for point in points if point == root or point.startswith(f"{root}/")]


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)])


def _run(*command: str) -> str:
    """What went wrong; nothing if all went well."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_UNMOUNT_WITHIN, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return " ".join(done.stderr.split()) or "unknown error" if done.returncode else ""
