"""How many machines a supervisor is to keep alive: a file that commands and it change."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, NamedTuple

from sojourn.host.files import locked, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.host.folders import TaskFolders

__all__ = ["Want", "Wanted"]

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Want(NamedTuple):
    """How many machines, and which request that was.

    `generation`: empty if there is none, and of what a former version wrote.
    """

    machines: int = 0
    generation: str = ""


class Wanted:
    """What commands ask for, and the supervisor reads; absent or damaged: none.

    Of what is damaged nobody knows what was asked for. The task seems stopped, and can be started.
    """

    def __init__(self, folders: TaskFolders) -> None:
        self._path = folders.wanted
        self._lock = folders.wanted_lock

    def read(self) -> Want:
        try:
            machines, *generation = self._path.read_text().split()
            return Want(max(0, int(machines)), *generation[:1])
        except (FileNotFoundError, ValueError):
            return Want()

    def set(self, machines: int) -> None:
        """Ask for so many from now on; if it is what was asked for, nothing changes."""
        with locked(self._lock):
            if not machines or machines != self.read().machines:
                self._write(machines, os.urandom(4).hex())

    def subtract(self, ended: Sequence[str]) -> None:
        """Want fewer, by machines that had done their work; of each, in which generation it began.

        Who asked after that did so knowing which ranks had ended: those were subtracted already.
        """
        with locked(self._lock):
            machines, generation = self.read()
            done = ended.count(generation)
            if machines and done:
                self._write(max(0, machines - done), generation)

    def _write(self, machines: int, generation: str) -> None:
        try:
            write_whole(self._path, f"{machines} {generation}".strip() if machines else "0")
        except OSError as error:
            if machines or error.errno not in _FULL:
                raise
            # What filled the disk must be possible to stop, and this needs no space.
            self._path.unlink(missing_ok=True)
