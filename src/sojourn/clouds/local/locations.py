"""Where the local cloud keeps things.

    DATA/sojourn/local/ID/                  a task, see `sojourn.host.folders`
    CACHE/sojourn/machines/ID/MACHINE/      the disk of a machine, gone when the machine is

DATA is $XDG_DATA_HOME or ~/.local/share; CACHE is $XDG_CACHE_HOME or ~/.cache. A named cloud with
a folder has `tasks` and `machines` in it instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sojourn.core.userfolders import cache_home, data_home

__all__ = ["Roots"]


@dataclass(frozen=True)
class Roots:
    """The folder of all tasks, and that of all machines."""

    tasks: Path
    machines: Path

    @classmethod
    def of(cls, folder: str = "") -> Roots:
        """Those in a folder, or where this user's environment puts them."""
        if folder:
            return cls(Path(folder) / "tasks", Path(folder) / "machines")
        return cls(data_home() / "sojourn" / "local", cache_home() / "sojourn" / "machines")
