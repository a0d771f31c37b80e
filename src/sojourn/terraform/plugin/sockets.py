"""Where the socket lies: a folder that is locked while its process lives."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["folder"]

_PREFIX = "sojourn-terraform-"
_NEW = f".{_PREFIX}"
_LENGTH = 90  # a socket's path must not be longer than some 100 characters


@contextmanager
def folder() -> Iterator[str]:
    """A folder that only this user can enter, with a short path.

    Those that killed processes left are removed on the way.
    """
    wanted = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or _temporary()
    where = Path(wanted if len(wanted) < _LENGTH - 30 else "/tmp")  # noqa: S108
    _sweep(where)
    new = where / f"{_NEW}{os.urandom(6).hex()}"
    new.mkdir(0o700)
    lock = os.open(new, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        own = new.rename(where / new.name.removeprefix("."))  # locked before others look at it
        try:
            yield str(own)
        finally:
            _remove(own)
    finally:
        os.close(lock)


def _sweep(where: Path) -> None:
    for left in where.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # in use, or just gone
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():  # what others put there is theirs
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(left)
            finally:
                os.close(lock)


def _temporary() -> str:
    """As `tempfile` chooses, whose loading would take longer than all of this."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        folder = os.environ.get(name, "")
        if os.path.isabs(folder) and os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return "/tmp"  # noqa: S108


def _remove(own: Path) -> None:
    """A folder with a socket in it, or without."""
    with suppress(OSError):
        for inside in own.iterdir():
            inside.unlink()
        own.rmdir()
