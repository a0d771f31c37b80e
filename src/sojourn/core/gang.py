"""Gangs: ranks that start together and fall together, and MPI on top of them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["DEFAULT_GANG_TIMEOUT", "FILES_AT_MOST", "IMPLEMENTATIONS", "Mpi", "file_problems"]

DEFAULT_GANG_TIMEOUT = 30 * 60
IMPLEMENTATIONS = ("openmpi", "intel", "mpich")
FILES_AT_MOST = 1 << 20  # bytes, of all files together: what a ConfigMap of Kubernetes can hold
_SLOTS_AT_MOST = 10_000


@dataclass(frozen=True)
class Mpi:
    """How a gang runs an MPI program: its script runs once, on rank 0, and calls `mpirun`.

    `slots`: processes per machine. `implementation`: what the image has.
    """

    slots: int = 1
    implementation: str = "openmpi"

    @classmethod
    def problems(cls, value: object) -> Iterator[Problem]:
        """What is wrong with what a task has as its `mpi`."""
        if value is None:
            return
        if not isinstance(value, cls):
            yield Problem("mpi", "must be a map such as {slots = 2}")
            return
        if type(value.slots) is not int or not 1 <= value.slots <= _SLOTS_AT_MOST:
            yield Problem(
                "mpi.slots",
                f"must be a whole number from 1 to {_SLOTS_AT_MOST}, got {value.slots!r}",
            )
        if value.implementation not in IMPLEMENTATIONS:
            yield Problem(
                "mpi.implementation",
                f"must be one of {', '.join(IMPLEMENTATIONS)}, got {value.implementation!r}",
            )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Mpi:
        """What a newer version added is ignored."""
        return cls(**{key: data[key] for key in cls.__dataclass_fields__ if key in data})


def file_problems(files: object) -> Iterator[Problem]:
    """What is wrong with the small files that a task puts at given paths."""
    if not isinstance(files, Mapping) or not all(
        isinstance(part, str) for pair in files.items() for part in pair
    ):
        yield Problem("files", "must be a map of absolute paths to contents")
        return
    for path in files:
        if not path.startswith("/") or posixpath.normpath(path) != path or "\0" in path:
            yield Problem(
                "files", f"must have absolute paths such as /etc/hpl/HPL.dat, got {path!r}"
            )
    size = sum(len(text.encode(errors="surrogateescape")) for text in files.values())
    if size > FILES_AT_MOST:
        yield Problem(
            "files",
            f"must be at most 1 MiB together, got {size:,} bytes; "
            "put large files into the workdir instead",
        )
