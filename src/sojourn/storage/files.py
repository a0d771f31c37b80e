"""Files in a folder that others write to as well: no path leads out of it.

Each part of a path is opened below the one before, and symlinks are never followed.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.storage.objectinfo import Buffer

__all__ = [
    "UNFINISHED",
    "copy_bytes",
    "create_unfinished",
    "keep_file",
    "open_below",
    "open_folder",
    "open_inner",
    "opened",
    "read_whole",
    "unfinished",
    "write_all",
    "write_whole",
]

UNFINISHED = ".sojourn-"  # how the names of files that are being written begin
_COPIED_AT_ONCE = 1 << 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Whatever it is by now: a pipe must not make anybody wait.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def open_folder(path: str) -> int:
    """A descriptor of a folder, wherever its path leads."""
    return os.open(path, _FOLDER)


def open_below(descriptor: int, parts: Sequence[str], *, make: bool = False) -> int:
    """A descriptor of a folder below an open one, which is closed.

    `make`: those that are absent are made.
    """
    try:
        for part in parts:
            inner = open_inner(descriptor, part, make=make)
            os.close(descriptor)
            descriptor = inner
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_inner(folder: int, name: str, *, make: bool = False) -> int:
    """A descriptor of a folder in an open one."""
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)


@contextmanager
def opened(folder: int, name: str, flags: int = _READ) -> Iterator[int]:
    """A file's descriptor, by default to read it; whatever else has this name counts as absent."""
    descriptor = os.open(name, flags, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        yield descriptor
    finally:
        os.close(descriptor)


def create_unfinished(folder: int) -> tuple[str, int]:
    """The name and descriptor of a new file with a hidden name."""
    name = UNFINISHED + os.urandom(8).hex()
    return name, os.open(name, _CREATE, 0o666, dir_fd=folder)


@contextmanager
def unfinished(folder: int) -> Iterator[tuple[str, int]]:
    """The name and descriptor of a new file, which is gone afterwards unless it was renamed."""
    name, descriptor = create_unfinished(folder)
    try:
        yield name, descriptor
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def read_whole(descriptor: int, size: int) -> bytes:
    """All of an open file of this size; what is added to it meanwhile is left out."""
    data = os.read(descriptor, size)
    if len(data) == size:
        return data
    pieces = [data]  # the system reads 2 GiB at once, at most
    size -= len(data)
    while size and (piece := os.read(descriptor, size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def write_all(descriptor: int, data: Buffer) -> None:
    """Write all of it."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def write_whole(descriptor: int, data: Buffer) -> None:
    """Write all of it, and close: some file systems say only then that they are full."""
    try:
        write_all(descriptor, data)
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)


def copy_bytes(source: int, target: int) -> None:
    """Copy all of an open file into another and close that; within the file system if it can."""
    try:
        if not _copied_by_system(source, target):
            os.lseek(source, 0, os.SEEK_SET)
            os.lseek(target, 0, os.SEEK_SET)
            while piece := os.read(source, _COPIED_AT_ONCE):
                write_all(target, piece)
    except BaseException:
        os.close(target)
        raise
    os.close(target)


def _copied_by_system(source: int, target: int) -> bool:
    copy = getattr(os, "copy_file_range", None)  # Linux only
    if copy is None:
        return False
    left = os.fstat(source).st_size
    while left:
        try:
            count = copy(source, target, left)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise
            return False
        if not count:
            return False
        left -= count
    return True


def keep_file(path: Path | str, folder: int | None = None) -> None:
    """Have a file, or the names in a folder, written to the disk. Absent: nothing to do."""
    try:
        descriptor = os.open(path, _READ, dir_fd=folder)
    except FileNotFoundError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
