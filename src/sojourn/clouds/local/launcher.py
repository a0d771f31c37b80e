"""The launcher of MPI programs that is installed on this computer."""

from __future__ import annotations

import shutil

__all__ = ["HOW_TO_INSTALL", "find_launcher"]

HOW_TO_INSTALL = (
    "install Open MPI: `sudo apt install openmpi-bin`, `sudo dnf install openmpi` or "
    "`brew install open-mpi`"
)


def find_launcher(name: str = "mpirun", path: str | None = None) -> str:
    """Its program on the PATH of a script; empty if there is none."""
    return shutil.which(name, path=path or None) or ""
