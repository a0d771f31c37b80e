"""Giving a file its name in a folder, and taking it away."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.storage.files import UNFINISHED, copy_bytes, unfinished, write_whole

if TYPE_CHECKING:
    from sojourn.storage.objectinfo import Buffer

__all__ = ["claim", "copy_file", "created", "linked", "remove", "write_file"]

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def write_file(folder: int, name: str, data: Buffer) -> None:
    """Write a file, in place of the one that is there."""
    with unfinished(folder) as (new, descriptor):
        write_whole(descriptor, data)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def copy_file(source: int, folder: int, name: str) -> None:
    """Copy an open file, in place of the one that is there."""
    with unfinished(folder) as (new, descriptor):
        copy_bytes(source, descriptor)
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)


def created(folder: int, name: str, data: Buffer) -> bool:
    """Write a file if there is none of this name."""
    with unfinished(folder) as (new, descriptor):
        write_whole(descriptor, data)
        return claim(folder, new, name)


def claim(folder: int, new: str, name: str) -> bool:
    """Give a file another name if nothing has it; of many racing callers one gets True."""
    try:
        os.link(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _claimed(folder, new, name)
    return True


def _claimed(folder: int, new: str, name: str) -> bool:
    """Without links: of many that make an empty file one succeeds, and puts its own in place."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        os.close(os.open(name, flags, 0o666, dir_fd=folder))
    except FileExistsError:
        return False
    try:
        os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(name, dir_fd=folder)
        raise
    return True


def linked(old: int, name: str, folder: int, copied: str) -> bool:
    """Copy by a second name for the same file: objects are replaced, and not changed."""
    new = f"{UNFINISHED}{os.urandom(8).hex()}"
    try:
        os.link(name, new, src_dir_fd=old, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno in (*_NO_LINKS, errno.EXDEV):
            return False
        raise
    try:
        os.rename(new, copied, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            # A rename to another name of the same file does nothing, by POSIX.
            os.unlink(new, dir_fd=folder)
    return True


def remove(folder: int, name: str) -> None:
    """Remove a file; whatever is none counts as absent."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        # A folder is no object; systems disagree on what they say of it.
        if error.errno not in (errno.EISDIR, errno.EPERM):
            raise
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode):
            raise
