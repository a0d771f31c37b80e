"""What the user asks for: frozen data that is valid from the moment it exists."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from sojourn.core.durations import parse_seconds
from sojourn.core.environment import LARGEST_VARIABLE, environment_problems
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.filters import Filters
from sojourn.core.gang import DEFAULT_GANG_TIMEOUT, Mpi, file_problems
from sojourn.core.runner import Runner
from sojourn.core.status import MACHINES_AT_MOST

__all__ = ["UNIX_ENDINGS", "Storage", "Task"]

DEFAULT_TIMEOUT = 24 * 60 * 60
UNIX_ENDINGS = "sed -i 's/\\r$//' FILE"
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Storage:
    """Which folder travels with the script, and which of its folders comes home.

    `workdir`: uploaded, and the script's working directory; blank: nothing is uploaded.
    `output`: comes home, relative to `workdir`; blank: nothing is downloaded. None: it was not
    said, so a task that leaves files in its workdir is not deleted before somebody saw them.
    `exclude`: patterns of files that are transferred in neither direction.
    `default_ignore`: whether folders that every checkout has, such as `.git`, stay at home.
    `container`: an existing bucket, or `bucket/path`, to use instead of a new one.
    """

    workdir: str = ""
    output: str | None = None
    exclude: tuple[str, ...] = ()
    container: str = ""
    container_opts: Mapping[str, str] = field(default_factory=dict, repr=False)
    default_ignore: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.workdir, os.PathLike):
            object.__setattr__(self, "workdir", os.fspath(self.workdir))
        if isinstance(self.exclude, list):
            object.__setattr__(self, "exclude", tuple(self.exclude))
        _copy(self, "container_opts")
        _refuse(self._problems())

    def _problems(self) -> Iterator[Problem]:
        yield from _texts(self, "storage.", "workdir", "container")
        if self.output is not None:
            yield from _texts(self, "storage.", "output")
        yield from _mapping(self.container_opts, "storage.container_opts")
        if isinstance(self.output, str) and not _inside(self.output):
            yield Problem(
                "storage.output",
                f"must be a path inside workdir, without `..`, got {self.output!r}",
            )
        if not isinstance(self.exclude, tuple) or not all(
            isinstance(pattern, str) for pattern in self.exclude
        ):
            yield Problem("storage.exclude", "must be a list of patterns such as '*.pyc'")
        else:
            yield from _exclude_problems(self.exclude, _excludable(self.output))
        if type(self.default_ignore) is not bool:
            yield Problem(
                "storage.default_ignore", f"must be a boolean, got {self.default_ignore!r}"
            )
        if self.container_opts and not self.container:
            yield Problem("storage.container_opts", "requires storage.container")


@dataclass(frozen=True)
class Task:
    """A script, the machine to run it on, and the data it needs.

    The meaning of every field is in docs/reference.md. Environment values may be secret, so they
    are not part of the representation. `timeout` may be given as a text such as "1h30m", and
    `arguments` as a list. `mounts` is data that is there already, by the path where the script
    finds it; `options` is what only this cloud has a word for. A task that stays has no end of its
    own: its machine is there until somebody takes it away, or it was idle for too long. `runner` is
    set if the script is a CI runner. The ranks of a `gang` start together and fall together; one
    that is not complete after `gang_timeout` fails. A task with `mpi` is a gang whose script runs
    on rank 0 only. `files` are small texts by the paths where the script finds them: absolute
    ones, or in the workdir. Machines stay for `warm` seconds after the end, for another run.
    """

    script: str
    cloud: str = "local"
    region: str = "us-west"
    machine: str = "m"
    disk_size: int = -1
    spot: float = -1
    image: str = "ubuntu"
    permission_set: str = ""
    parallelism: int = 1
    storage: Storage = field(default_factory=Storage)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: int = DEFAULT_TIMEOUT
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    arguments: tuple[str, ...] = ()
    mounts: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    stay: bool = False
    idle_timeout: int = 0
    runner: Runner | None = None
    gang: bool = False
    gang_timeout: int = DEFAULT_GANG_TIMEOUT
    mpi: Mpi | None = None
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    warm: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.arguments, list):
            object.__setattr__(self, "arguments", tuple(self.arguments))
        if isinstance(self.mpi, Mapping):
            with suppress(TypeError):  # what has other keys is left as it is, to be refused
                object.__setattr__(self, "mpi", Mpi(**self.mpi))
        if self.mpi is not None and self.gang is False:
            object.__setattr__(self, "gang", True)
        for name in ("timeout", "idle_timeout", "gang_timeout", "warm"):
            _in_seconds(self, name)
        for name in ("environment", "tags", "mounts", "options", "files"):
            _copy(self, name)
        _refuse(self._problems())

    def _problems(self) -> Iterator[Problem]:
        yield from _texts(
            self, "", "script", "cloud", "region", "machine", "image", "permission_set", "name"
        )
        if isinstance(self.script, str):
            yield from _script_problems(self.script)
        yield from _number(
            self,
            "disk_size",
            "-1 (automatic) or at least 1 (GB)",
            low=1,
            high=_LARGEST,
            also=-1,
        )
        yield from _number(
            self,
            "spot",
            "-1 (on demand), 0 (automatic price) or a maximum price in USD per hour",
            low=0,
            also=-1,
            kinds=(int, float),
        )
        yield from _number(
            self,
            "parallelism",
            f"a whole number from 1 to {MACHINES_AT_MOST}",
            low=1,
            high=MACHINES_AT_MOST,
        )
        yield from _argument_problems(self.arguments)
        yield from self._time_problems()
        if not isinstance(self.storage, Storage):
            yield Problem("storage", "must be a Storage")
        if isinstance(self.environment, Mapping):
            yield from environment_problems(self.environment)
        else:
            yield Problem("environment", "must be a map of names to values")
        for name in ("tags", "mounts", "options"):
            yield from _mapping(getattr(self, name), name)
        yield from Runner.problems(self.runner)
        yield from self._gang_problems()

    def _gang_problems(self) -> Iterator[Problem]:
        if type(self.gang) is not bool:
            yield Problem("gang", f"must be a boolean, got {self.gang!r}")
        elif self.gang and self.stay is True:
            yield Problem("stay", "cannot be combined with gang")
        yield from _number(
            self,
            "gang_timeout",
            "a number of seconds (at least 1) or a duration such as '30m'",
            low=1,
            high=_LARGEST,
        )
        yield from _number(
            self,
            "warm",
            "a number of seconds or a duration such as '30m'",
            low=0,
            high=_LARGEST,
        )
        if self.warm and not self.name:
            yield Problem("warm", "requires name: it is how another run finds the machines")
        yield from Mpi.problems(self.mpi)
        yield from file_problems(self.files)

    def _time_problems(self) -> Iterator[Problem]:
        endless = self.stay is True or self.runner is not None
        least = "at least 1, or 0 for no limit" if endless else "at least 1"
        right = f"a number of seconds ({least}) or a duration such as '1h30m'"
        yield from _number(
            self, "timeout", right, low=1, high=_LARGEST, also=0 if endless else None
        )
        if type(self.stay) is not bool:
            yield Problem("stay", f"must be a boolean, got {self.stay!r}")
        yield from _number(
            self,
            "idle_timeout",
            "a number of seconds or a duration such as '1h30m'; 0: no limit",
            low=0,
            high=_LARGEST,
        )
        if self.idle_timeout and not self.stay:
            yield Problem("idle_timeout", "requires stay")

    def filters(self) -> Filters:
        """The files that are transferred in neither direction."""
        return Filters(self.storage.exclude)

    def to_dict(self) -> dict[str, Any]:
        """All but the values of the environment and of container_opts, which may be secret."""
        data = asdict(self)
        data["environment"] = dict.fromkeys(self.environment, "")
        data["storage"]["container_opts"] = dict.fromkeys(self.storage.container_opts, "")
        data["storage"]["exclude"] = list(self.storage.exclude)
        data["arguments"] = list(self.arguments)
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Read what `to_dict` wrote; fields that a newer version added are ignored."""
        known = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        if known.get("runner") is not None:
            known["runner"] = Runner.from_dict(known["runner"])
        if known.get("mpi") is not None:
            known["mpi"] = Mpi.from_dict(known["mpi"])
        storage = data.get("storage", {})
        known["storage"] = Storage(
            **{key: storage[key] for key in Storage.__dataclass_fields__ if key in storage}
        )
        return cls(**known)


def _copy(holder: object, name: str) -> None:
    """Take a mapping as it is now: what its giver does with it later must not reach us."""
    value = getattr(holder, name)
    if isinstance(value, Mapping):
        object.__setattr__(holder, name, dict(value))


def _in_seconds(holder: object, name: str) -> None:
    """What is no duration is left as it is, to be refused."""
    value = getattr(holder, name)
    if isinstance(value, str):
        with suppress(ValueError):
            object.__setattr__(holder, name, parse_seconds(value))


def _refuse(problems: Iterator[Problem]) -> None:
    found = list(problems)
    if found:
        raise InvalidInput(found[0].path, found[0].message, *found[1:])


def _texts(holder: object, prefix: str, *names: str) -> Iterator[Problem]:
    for name in names:
        value = getattr(holder, name)
        if not isinstance(value, str):
            yield Problem(prefix + name, f"must be a string, got {value!r}")
        elif "\0" in value:
            yield Problem(prefix + name, "must not contain a NUL character")


def _mapping(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        yield Problem(path, "must be a map of strings to strings")


def _number(
    task: Task,
    name: str,
    right: str,
    *,
    low: float,
    also: float | None = None,
    high: float = float("inf"),
    kinds: tuple[type, ...] = (int,),
) -> Iterator[Problem]:
    value: Any = getattr(task, name)
    if type(value) not in kinds:
        yield Problem(name, f"must be {right}, got {value!r}")
    elif not (low <= value <= high or value == also) or value == float("inf"):
        limit = f"at most {high}" if value > high else right
        yield Problem(name, f"must be {limit}, got {value}")


def _script_problems(script: str) -> Iterator[Problem]:
    if not script.strip():
        yield Problem("script", "must not be empty")
    elif script.lstrip().startswith("#!") and not script.startswith("#!"):
        yield Problem(
            "script",
            "must start with its shebang, without leading spaces or empty lines "
            "(in HCL, use <<-END instead of <<END)",
        )
    elif not script.startswith("#!"):
        yield Problem("script", "must start with a shebang such as #!/bin/bash")
    elif _has_windows_line_endings(script):
        yield Problem(
            "script",
            "has Windows line endings (CRLF), which its program reads as part of words; "
            f"run `{UNIX_ENDINGS}`",
        )


def _has_windows_line_endings(script: str) -> bool:
    """In the first line, or in all others: a here-document may need some."""
    first, *others = [line for line in script.split("\n") if line]
    return first.endswith("\r") or (bool(others) and all(each.endswith("\r") for each in others))


def _argument_problems(arguments: object) -> Iterator[Problem]:
    if not isinstance(arguments, tuple) or not all(isinstance(item, str) for item in arguments):
        yield Problem("arguments", "must be a list of strings, such as ['--lr', '0.1']")
        return
    for number, argument in enumerate(arguments):
        if "\0" in argument:
            yield Problem(f"arguments[{number}]", "must not contain a NUL character")
        elif len(argument.encode(errors="surrogateescape")) > LARGEST_VARIABLE:
            yield Problem(
                f"arguments[{number}]",
                f"must be at most {LARGEST_VARIABLE:,} bytes; write it to a file in the workdir",
            )


def _excludable(output: object) -> str:
    """The output as filters see it; nothing, if it is the whole workdir or wrong anyway."""
    path = posixpath.normpath(output) if isinstance(output, str) else "."
    return "" if path == "." else path


def _exclude_problems(patterns: tuple[str, ...], output: str) -> Iterator[Problem]:
    if output and Filters().covers(output):
        yield Problem("storage.output", f"{output!r} is never transferred; choose another folder")
        return
    for pattern in patterns:
        try:
            excluded = Filters((pattern,)).covers(output)
        except InvalidInput as error:
            yield from error.problems
            continue
        if output and excluded:
            yield Problem(
                "storage.exclude",
                f"{pattern!r} excludes storage.output ({output!r}): no results would be downloaded",
            )


def _inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in posixpath.normpath(path).split("/")
