"""The folder that results come home to: where in it, one pull at a time, and on the disk."""

from __future__ import annotations

import errno
import fcntl
import os
import posixpath
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import Conflict
from sojourn.storage.beneath import Beneath
from sojourn.storage.manifest import FILE, FOLDER, Entry
from sojourn.storage.output import leads_to
from sojourn.storage.restore import explained
from sojourn.storage.store import keep_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.storage.join import Base

__all__ = ["alone", "bring_to_disk", "landing"]

_FEW = 64  # files and folders that are flushed one by one


def landing(into: Path, output: str, base: Base, roots: Iterable[str]) -> str:
    """The path below `into` that the output gets.

    If the user's own output is a symlink to another folder of the workdir, results go there: it
    led there when it was pushed, it does so now, and no rank made something else of it (`roots`:
    where it leads for each). No other symlink is followed.
    """
    home = leads_to(output, base)
    if home is None or any(root != home for root in roots) or not _leads(into, output, home):
        home = posixpath.normpath(output)
    _refuse_detours(into, home)
    return home


def _leads(into: Path, output: str, home: str) -> bool:
    """Whether the local output is at `home`, by way of symlinks or not."""
    there = os.path.normpath(os.path.join(os.path.realpath(into), home))
    return os.path.realpath(into / output) == there


def _refuse_detours(into: Path, home: str) -> None:
    """What is above the output is not ours to move away."""
    names = home.split("/")
    for count in range(1, len(names)):
        path = into.joinpath(*names[:count])
        try:
            if stat.S_ISDIR(os.lstat(path).st_mode):
                continue
        except FileNotFoundError:
            return
        raise Conflict(
            f"Could not create folder {path}: a file or symlink with this name already exists",
            hint="Move it elsewhere and try again, or choose another folder with --into.",
        )


@contextmanager
def alone(ctx: Context, folder: Path) -> Iterator[None]:
    """Keeps two pulls into one folder from writing at once."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    break  # this file system has no locks
            if not told:
                ctx.note(f"Waiting for another pull into {folder}")
                told = True
            ctx.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


def bring_to_disk(into: Path, entries: list[Entry], above: set[Path]) -> None:
    """Have it outlive a power cut: the store that it came from may be deleted next.

    `above`: folders in which folders were made to put it into.
    """
    if len({entry.path for entry in entries}) > _FEW:
        os.sync()  # the disk is told of all at once
        return
    files = {entry.path for entry in entries if entry.kind == FILE}
    folders = {posixpath.dirname(entry.path) for entry in entries}
    folders |= {entry.path for entry in entries if entry.kind == FOLDER}
    try:
        for outer in above:
            with explained(os.fspath(outer)):
                keep_file(outer)
        with Beneath(into) as there:
            for path in sorted(files):
                with suppress(FileNotFoundError), explained(f"{into}/{path}"):
                    folder, name = there.within(path)
                    keep_file(name, folder)
            for path in sorted(folders):
                with suppress(FileNotFoundError), explained(f"{into}/{path}"):
                    os.fsync(there.folder(path))
    except OSError as error:
        if error.errno == errno.EIO:
            raise
        os.sync()  # one that may not be opened, or a file system that cannot do it singly
