"""Gangs: ranks that start together and fall together, and MPI on top of them."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.core.argument import COUNT, MPI, TASK, TEXT, argument
from sojourn.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DEFAULT_GANG_TIMEOUT",
    "FILES_AT_MOST",
    "IMPLEMENTATIONS",
    "Mpi",
    "absolute",
    "file_problems",
    "file_size",
    "relative",
]

DEFAULT_GANG_TIMEOUT = 30 * 60
IMPLEMENTATIONS = ("openmpi", "intel", "mpich")
FILES_AT_MOST = 1 << 20  # bytes, of all files together: what every cloud can take
_SLOTS_AT_MOST = 10_000


@dataclass(frozen=True)
class Mpi:
    """How a gang runs an MPI program: its script runs once, on rank 0, and calls `mpirun`.

    `slots`: processes per machine. `implementation`: what the image has.
    """

    slots: int = argument(1, COUNT, "MPI processes per machine (default: 1).", of=(TASK, MPI))
    implementation: str = argument(
        IMPLEMENTATIONS[0],
        TEXT,
        f"{', '.join(IMPLEMENTATIONS)} (default: {IMPLEMENTATIONS[0]}).",
        option="--mpi-implementation",
        metavar="NAME",
        of=(TASK, MPI),
    )

    @classmethod
    def problems(cls, value: object) -> Iterator[Problem]:
        """What is wrong with what a task has as its `mpi`."""
        if value is None:
            return
        if not isinstance(value, cls):
            names = value if isinstance(value, Mapping) else ()
            for name in names:
                if name not in cls.__dataclass_fields__:
                    yield Problem(f"mpi.{name}", "unknown field; use slots and implementation")
            if not names:
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
        yield Problem("files", "must be a map of paths to contents")
        return
    for path in files:
        if not _is_file_path(path):
            yield Problem(
                "files",
                "must have absolute paths such as /etc/hpl/HPL.dat, or paths in the workdir "
                f"without `..`, got {path!r}",
            )
        inner = next((other for other in files if other.startswith(f"{path}/")), "")
        if inner:
            yield Problem("files", f"{path!r} cannot be a file: {inner!r} is in it")
    size = sum(map(file_size, files.values()))
    if size > FILES_AT_MOST:
        yield Problem(
            "files",
            f"must be at most 1 MiB together, got {size:,} bytes; "
            "put large files into the workdir instead",
        )


def file_size(text: str) -> int:
    """Its bytes."""
    return len(text.encode(errors="surrogateescape"))


def _is_file_path(path: str) -> bool:
    normal = posixpath.normpath(path) == path and path not in (".", "..", "/") and "\0" not in path
    return normal and not path.startswith(("../", "//"))


def absolute(files: Mapping[str, str]) -> dict[str, str]:
    """Those that are put somewhere on the machine."""
    return {path: text for path, text in files.items() if path.startswith("/")}


def relative(files: Mapping[str, str]) -> dict[str, str]:
    """Those that are put into the workdir."""
    return {path: text for path, text in files.items() if not path.startswith("/")}
