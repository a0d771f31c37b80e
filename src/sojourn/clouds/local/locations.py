"""Where the local cloud keeps things.

    DATA/sojourn/local/ID/                  a task, see `sojourn.host.folders`
    CACHE/sojourn/machines/ID/MACHINE/      the disk of a machine, gone when the machine is

DATA is $XDG_DATA_HOME or ~/.local/share; CACHE is $XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.userfolders import cache_home, data_home

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["data_root", "machines_root"]


def data_root() -> Path:
    """The folder of all tasks."""
    return data_home() / "sojourn" / "local"


def machines_root() -> Path:
    """The folder of all machines."""
    return cache_home() / "sojourn" / "machines"
