"""How many machines a supervisor is to keep alive: a number in a file."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from sojourn.clouds.local.files import locked, write_whole

if TYPE_CHECKING:
    from sojourn.clouds.local.folders import TaskFolders

__all__ = ["Wanted"]

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Wanted:
    """What commands ask for, and the supervisor reads; absent or damaged: none.

    Of what is damaged nobody knows what was asked for. The task seems stopped, and can be started.
    """

    def __init__(self, folders: TaskFolders) -> None:
        self._path = folders.wanted
        self._lock = folders.wanted_lock

    def read(self) -> int:
        try:
            return max(0, int(self._path.read_text()))
        except (FileNotFoundError, ValueError):
            return 0

    def set(self, machines: int) -> None:
        with locked(self._lock):
            self._write(machines)

    def subtract(self, machines: int) -> None:
        """Want fewer, by those that had done their work."""
        with locked(self._lock):
            self._write(max(0, self.read() - machines))

    def _write(self, machines: int) -> None:
        try:
            write_whole(self._path, str(machines))
        except OSError as error:
            if machines or error.errno not in _FULL:
                raise
            # What filled the disk must be possible to stop, and this needs no space.
            self._path.unlink(missing_ok=True)
