"""How many processes a command of MPI and an input of HPL ask for, before anything is made."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.task import Task

__all__ = ["HPL_INPUTS", "check_grids", "check_processes", "is_launcher", "with_launcher"]

HPL_INPUTS = ("HPL.dat", "hpccinf.txt")
_LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun")  # also mpirun.openmpi and the like
_COUNTS = ("-np", "--np", "-n", "--n", "-c", "-p")
_HAVE_VALUES = {
    1: (
        *("--bind-to", "--rank-by", "--map-by", "-x", "--hostfile", "-hostfile", "--machinefile"),
        *("-machinefile", "-H", "--host", "-host", "-hosts", "-f", "-wdir", "--wdir", "-wd"),
        *("-N", "--npernode", "-npernode", "--npersocket", "-npersocket", "-ppn", "--ppn"),
        *("-perhost", "--prefix", "--output-filename", "--timeout", "-genvlist", "-bind-to"),
        *("-map-by", "--output", "--display", "--path", "-path", "--tune", "-am", "--am"),
    ),
    2: ("--mca", "-mca", "--gmca", "--prtemca", "--pmixmca", "-genv", "-env", "-genvappend"),
}
_ARITY = {name: count for count, names in _HAVE_VALUES.items() for name in names}
_GRIDS, _PS, _QS = 9, 10, 11  # lines of an input, which HPL reads by their places


def is_launcher(program: str) -> bool:
    """Whether it starts the processes of others."""
    return posixpath.basename(program).partition(".")[0] in _LAUNCHERS


def with_launcher(command: Sequence[str], processes: int) -> tuple[str, ...]:
    """The command that runs a program in so many processes; a launcher stays as it is."""
    if is_launcher(command[0]):
        return tuple(command)
    return ("mpirun", "-np", str(processes), *command)


def check_processes(task: Task, command: Sequence[str]) -> None:
    """Refuse a launcher's command that asks for another number than there are slots."""
    asked = _processes(command)
    if asked is not None and asked != _there(task):
        raise InvalidInput(
            "arguments",
            f"{posixpath.basename(command[0])} asks for {asked} processes, but {_product(task)}; "
            "change -np, --machines or --slots, or leave out -np",
        )


def check_grids(task: Task, name: str, text: str) -> None:
    """Refuse an input of HPL none of whose grids needs all processes, or one of them more."""
    grids = _grids(text)
    wrong = [p * q > _there(task) for p, q in grids]
    if not grids or (not any(wrong) and any(p * q == _there(task) for p, q in grids)):
        return
    p, q = grids[wrong.index(True) if any(wrong) else 0]
    raise InvalidInput(
        "files",
        f"{name} has a grid of {p} x {q} = {p * q} processes, but {_product(task)}; "
        "change Ps and Qs, --machines or --slots",
    )


def _there(task: Task) -> int:
    return task.parallelism * (task.mpi.slots if task.mpi else 1)


def _product(task: Task) -> str:
    machines = f"{task.parallelism} machine{'s' if task.parallelism > 1 else ''}"
    slots = task.mpi.slots if task.mpi else 1
    return f"{machines} x {slots} slot{'s' if slots > 1 else ''} = {_there(task)}"


def _processes(command: Sequence[str]) -> int | None:
    """What a launcher is asked for, in all its parts; None if it is not said, or unclear."""
    if not is_launcher(command[0]):
        return None
    counts: list[int | None] = []
    words = list(command[1:])
    while words:
        end = words.index(":") if ":" in words else len(words)
        counts.append(_count(words[:end]))
        words = words[end + 1 :]
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _count(words: list[str]) -> int | None:
    number = 0
    while number < len(words) and words[number].startswith("-"):
        name, equals, value = words[number].partition("=")
        if name in _COUNTS:
            said = value if equals else "".join(words[number + 1 : number + 2])
            return int(said) if said.isdecimal() else None
        number += 1 if equals else 1 + _ARITY.get(name, 0)
    return None


def _grids(text: str) -> list[tuple[int, int]]:
    """The P and Q of each process grid; none if it does not look like an input of HPL."""
    lines = text.splitlines()
    if len(lines) <= _QS:
        return []
    count = _numbers(lines[_GRIDS])[:1]
    ps, qs = _numbers(lines[_PS]), _numbers(lines[_QS])
    if not count or not 0 < count[0] <= min(len(ps), len(qs)):
        return []
    return list(zip(ps[: count[0]], qs[: count[0]], strict=True))


def _numbers(line: str) -> list[int]:
    """Those that it begins with; all after them is a comment."""
    found = []
    for word in line.split():
        if not word.isdecimal():
            break
        found.append(int(word))
    return found
