"""What the readers of all kinds of files share; no parser is loaded here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["NoTask", "OtherResource", "Source", "decoded", "read_text", "refusal", "unknown"]


@dataclass(frozen=True)
class OtherResource:
    """Something in a file that is no task, and the command that creates the like."""

    address: str
    verb: str
    has_machine: bool
    cloud: str = ""  # of its machine; empty: only Terraform can tell


class NoTask(InvalidInput):
    """There is no task in a file; there may be something else."""


@dataclass(frozen=True)
class Source:
    """Where a task is written: a file, the label of its block, and the lines of its fields.

    The line of the field "" is that of the task itself.
    """

    file: str
    label: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """The same problems, each with the file and line it is in, in the order of lines."""
        found = [(self._line(problem.path), problem) for problem in problems]
        found.sort(key=lambda pair: (pair[0] is None, pair[0] or 0))
        return [Problem(self._path(line, problem.path), problem.message) for line, problem in found]

    def refusal(self, problems: Iterable[Problem]) -> InvalidInput:
        """The error that names them all."""
        return refusal(self.located(problems))

    def _path(self, line: int | None, path: str) -> str:
        place = self.file if line is None else f"{self.file}:{line}"
        return ": ".join(part for part in (place, self.label, path) if part)

    def _line(self, path: str) -> int | None:
        lines = (self.lines[known] for known in _around(path) if known in self.lines)
        return next(lines, None)


def _around(path: str) -> Iterator[str]:
    """A field and what contains it, the nearest first."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    yield ""


def refusal(problems: Iterable[Problem]) -> InvalidInput:
    """The error that names all these problems."""
    first, *more = problems
    return InvalidInput(first.path, first.message, *more)


def read_text(path: Path) -> str:
    """The text of a file, its line endings untouched."""
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(str(path), f"could not read file: {error.strerror}") from error


def decoded(data: bytes, name: str) -> str:
    """The text that a file, or whatever has this name, contains."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(name, "not valid UTF-8") from error


_HABITS = {
    "args": "arguments",
    "cmd": "script",
    "command": "script",
    "disk": "disk_size",
    "env": "environment",
    "instance_type": "machine",
    "machine_type": "machine",
    "machines": "parallelism",
    "outputs": "storage.output",
    "ignore": "storage.exclude",
    "replicas": "parallelism",
    "run": "script",
    "volume_mounts": "mounts",
    "volumes": "mounts",
}
"""What other tools call it, where it does not look alike."""


def unknown(path: str, known: Iterable[str]) -> Problem:
    """A field that there is not, and the one of `known` that was perhaps meant."""
    import difflib  # only for those who mistyped

    name = _last(path)
    by_name = {_last(whole): whole for whole in known}
    meant = by_name.get(_last(_HABITS.get(name, name)))
    if not meant:
        close = difflib.get_close_matches(name, by_name, n=1, cutoff=0.6)
        meant = by_name[close[0]] if close else ""
    return Problem(path, f"unknown field; did you mean {meant}?" if meant else "unknown field")


def _last(path: str) -> str:
    return path.rpartition(".")[2]
