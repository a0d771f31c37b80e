"""Small files in a folder that the script writes to as well, maybe from another container.

The agent may do more than the script. So what it reads and writes there is what is really there:
no symlink is followed, no pipe waited for, and nothing is read without end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.storage.beneath import Beneath, is_elsewhere
from sojourn.storage.files import open_inner, opened, write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Shared", "write_program"]

_LONGEST = 1 << 20  # bytes that are read
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Shared:
    """A folder. The one above it may be the script's; nobody changes what leads to that."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, path: str, longest: int = _LONGEST) -> bytes:
        """The beginning of a file; whatever else is at this path counts as absent."""
        with self._there() as there:
            folder, name = there.within(path)
            with opened(folder, name) as file:
                return os.read(file, longest)

    def has(self, path: str) -> bool:
        """Whether there is anything at this path."""
        with self._there() as there:
            try:
                folder, name = there.within(path)
                os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError as error:
                if not is_elsewhere(error):
                    raise
                return False
            return True

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file at once, in place of whatever is there."""
        with self._there() as there:
            folder, name = there.within(path)
            new = f".sojourn-{os.urandom(8).hex()}.part"
            file = os.open(new, _NEW, 0o600, dir_fd=folder)
            try:
                os.fchmod(file, mode)
                write_whole(file, data)
                os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(new, dir_fd=folder)
                raise

    def remove(self, path: str) -> None:
        """Remove a file. Absent: nothing to do."""
        with self._there() as there:
            try:
                folder, name = there.within(path)
                os.unlink(name, dir_fd=folder)
            except OSError as error:
                if not is_elsewhere(error):
                    raise

    def make(self, path: str, mode: int | None = None) -> None:
        """Make a folder, and those above it; one that is there gets this mode as well, if any."""
        with self._there() as there:
            made = ""
            for name in path.split("/"):
                os.close(open_inner(there.folder(made), name, make=True))
                made = f"{made}/{name}" if made else name
            if mode is not None:
                os.fchmod(there.folder(made), mode)

    def _there(self) -> Beneath:
        return Beneath(self._folder, strict=True)


def write_program(file: Path, text: str, mode: int = 0o700) -> None:
    """Write what is to be run, in a folder that a script may write to."""
    Shared(file.parent).write(file.name, text.encode("utf-8", "surrogateescape"), mode)
