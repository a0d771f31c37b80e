"""The folders and files of a task on a host.

ID/store/      the task's store
ID/scaler/     what its supervisor is to do and has done
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TaskFolders", "list_disks", "remove_empty"]


@dataclass(frozen=True)
class TaskFolders:
    """The folders and files of one task."""

    root: Path

    @property
    def machine_prefix(self) -> str:
        """What the ids of its machines begin with.

        A name gives the same id everywhere, so a user with two data folders can have two tasks of
        one id. Their processes are told apart by this.
        """
        here = zlib.crc32(os.fsencode(os.path.realpath(self.root)))
        return f"{TaskId.parse(self.root.name).short}-{here:08x}"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def scaler(self) -> Path:
        return self.root / "scaler"

    @property
    def settings(self) -> Path:
        """What the supervisor needs to know of the task, written when the scaler is made."""
        return self.scaler / "settings.json"

    @property
    def wanted(self) -> Path:
        """How many machines to keep alive."""
        return self.scaler / "wanted"

    @property
    def wanted_lock(self) -> Path:
        """Held while `wanted` is changed."""
        return self.scaler / "wanted.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the supervisor for as long as it lives."""
        return self.scaler / "supervisor.lock"

    @property
    def supervisor_log(self) -> Path:
        return self.scaler / "supervisor.log"

    @property
    def starts(self) -> Path:
        """How often a supervisor was started that has not lived for long since."""
        return self.scaler / "starts"

    @property
    def machines(self) -> Path:
        """The machines that are alive, as the supervisor saw them last."""
        return self.scaler / "machines.json"

    @property
    def events(self) -> Path:
        """What happened to machines, a JSON line each."""
        return self.scaler / "events.jsonl"


def list_disks(machines_folder: Path, prefix: str) -> list[Path]:
    """The disks of machines whose ids begin so."""
    with suppress(OSError):
        return sorted(path for path in machines_folder.iterdir() if path.name.startswith(prefix))
    return []


def remove_empty(folder: Path, up_to: Path) -> None:
    """Remove a folder and those above it, up to and with `up_to`, as far as they are empty."""
    with suppress(OSError):
        while folder != up_to.parent:
            folder.rmdir()
            folder = folder.parent
