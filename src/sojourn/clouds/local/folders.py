"""Where the local cloud keeps things.

    DATA/sojourn/local/ID/store/            the task's store
    DATA/sojourn/local/ID/scaler/           what its supervisor is to do and has done
    CACHE/sojourn/machines/ID/MACHINE/      the disk of a machine, gone when the machine is

DATA is $XDG_DATA_HOME or ~/.local/share; CACHE is $XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.userfolders import cache_home, data_home

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TaskFolders", "data_root", "list_folders", "machines_root", "remove_empty"]


def data_root() -> Path:
    """The folder of all tasks."""
    return data_home() / "sojourn" / "local"


def machines_root() -> Path:
    """The folder of all machines."""
    return cache_home() / "sojourn" / "machines"


@dataclass(frozen=True)
class TaskFolders:
    """The folders and files of one task."""

    root: Path

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


def list_folders(folder: Path) -> list[Path]:
    """What is in a folder; absent: nothing."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def remove_empty(folder: Path, up_to: Path) -> None:
    """Remove a folder and those above it, up to and with `up_to`, as far as they are empty."""
    with suppress(OSError):
        while folder != up_to.parent:
            folder.rmdir()
            folder = folder.parent
