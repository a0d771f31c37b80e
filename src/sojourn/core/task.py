"""What the user asks for: frozen data that is valid from the moment it exists."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from sojourn.core.argument import (
    COUNT,
    DURATION,
    FLAG,
    MACHINE,
    MPI,
    PAIRS,
    PATH,
    PRICE,
    REQUIRED,
    TASK,
    TEXT,
    TEXTS,
    argument,
    arguments_of,
)
from sojourn.core.environment import environment_problems
from sojourn.core.errors import Problem
from sojourn.core.filters import DEFAULT_IGNORED, Filters
from sojourn.core.gang import DEFAULT_GANG_TIMEOUT, IMPLEMENTATIONS, Mpi, file_problems
from sojourn.core.problems import (
    LARGEST,
    copied,
    excludable,
    exclude_problems,
    in_seconds,
    is_inside,
    kind_problems,
    number_problems,
    refuse,
    script_problems,
    word_problems,
)
from sojourn.core.runner import Runner
from sojourn.core.status import MACHINES_AT_MOST

__all__ = ["DEFAULT_REGION", "Storage", "Task"]

DEFAULT_REGION = "us-west"  # of tasks that name none, where their cloud does not either
DEFAULT_TIMEOUT = 24 * 60 * 60
# Numbers with limits of their own.
_LIMITED = ("disk_size", "spot", "parallelism", "gang_timeout", "timeout", "idle_timeout")


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

    workdir: str = argument(
        "",
        PATH,
        "Folder to upload and run in (default: none).",
        "Folder to upload and run in; empty: none.",
    )
    output: str | None = argument(
        None,
        TEXT,
        "Folder to download at the end, relative to the workdir.",
        "Folder to download, relative to `workdir`; empty: none.",
        in_place=True,
    )
    exclude: tuple[str, ...] = argument(
        (),
        TEXTS,
        "Do not upload or download these files; repeatable.",
        "Patterns of files not to upload or download. A leading `/` anchors a pattern at "
        "`workdir`, otherwise it matches at any depth; `**` matches any folders.",
        in_place=True,
        metavar="GLOB",
    )
    container: str = argument(
        "",
        TEXT,
        "Existing bucket or bucket/path for storage.",
        "Existing bucket or `bucket/path` to use instead of a new bucket.",
    )
    container_opts: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Set a cloud-specific option of the container; repeatable.",
        "Cloud-specific options of `container`.",
        option="--container-opt",
        metavar="NAME=VALUE",
        secret=True,
    )
    default_ignore: bool = argument(
        True,
        FLAG,
        f"Leave {', '.join(DEFAULT_IGNORED)} out of the upload (default) or not.",
        f"Whether {', '.join(f'`{name}`' for name in DEFAULT_IGNORED)} are left out of the "
        "upload (default: `true`).",
    )

    def __post_init__(self) -> None:
        if isinstance(self.workdir, os.PathLike):
            object.__setattr__(self, "workdir", os.fspath(self.workdir))
        if isinstance(self.exclude, list):
            object.__setattr__(self, "exclude", tuple(self.exclude))
        copied(self, "container_opts")
        refuse(self._problems())

    def _problems(self) -> Iterator[Problem]:
        yield from kind_problems(self, "storage.")
        if isinstance(self.output, str) and not is_inside(self.output):
            yield Problem(
                "storage.output",
                f"must be a path inside workdir, without `..`, got {self.output!r}",
            )
        if not isinstance(self.exclude, tuple) or not all(
            isinstance(pattern, str) for pattern in self.exclude
        ):
            yield Problem("storage.exclude", "must be a list of patterns such as '*.pyc'")
        else:
            yield from exclude_problems(self.exclude, excludable(self.output))
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

    script: str = argument(REQUIRED, TEXT, description="Script to run; must start with a shebang.")
    cloud: str = argument(
        "local", TEXT, "Cloud to run on, {clouds} (default: local).", "Cloud to run on: {clouds}."
    )
    region: str = argument(
        "",  # that of the cloud
        TEXT,
        f"Cloud region (default: {DEFAULT_REGION}).",
        "Cloud region or zone.",
        of_machine=True,
    )
    machine: str = argument(
        "m",
        TEXT,
        "Machine type, such as m, l, xl or m+t4 (default: m).",
        "Machine type.",
        of_machine=True,
    )
    disk_size: int = argument(
        -1,
        COUNT,
        "Disk size (default: automatic).",
        "Disk size in GB; `-1`: automatic.",
        metavar="GB",
        of_machine=True,
    )
    spot: float = argument(
        -1,
        PRICE,
        "Maximum USD per hour; 0: any spot price, -1: on demand (default).",
        "`-1`: on demand; `0`: any spot price; above: maximum spot price in USD per hour.",
        metavar="PRICE",
        of_machine=True,
    )
    image: str = argument(
        "ubuntu",
        TEXT,
        "Machine image, or container image docker://NAME (default: ubuntu).",
        "Machine image, or container image `docker://NAME`.",
        of_machine=True,
    )
    permission_set: str = argument(
        "",
        TEXT,
        "Cloud permissions of the machine.",
        "Cloud permissions of the machine; the format depends on the cloud.",
        of_machine=True,
    )
    parallelism: int = argument(
        1, COUNT, "Number of machines (default: 1).", "Number of machines.", of=(TASK, MPI)
    )
    storage: Storage = field(default_factory=Storage)
    environment: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Set a variable, or copy local ones by name or glob; repeatable.",
        "Environment variables of the script. An empty value copies the local variable; a glob "
        "with an empty value copies all that match.",
        option="-e, --env",
        metavar="NAME[=VALUE]",
        secret=True,
    )
    timeout: int = argument(
        DEFAULT_TIMEOUT,
        DURATION,
        "Maximum run time per machine, such as 45s, 90m or 1h30m (default: {lifetime}).",
        "Maximum run time per machine, in seconds.",
    )
    tags: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Tag all cloud resources; repeatable.",
        "Tags of all cloud resources.",
        option="--tag",
        metavar="NAME=VALUE",
    )
    name: str = argument(
        "",
        TEXT,
        "Task name; the same name always means the same task.",
        "Name that determines the `id`. Not recommended; rename the resource instead.",
        of=(TASK, MACHINE),
    )
    arguments: tuple[str, ...] = argument(
        (), TEXTS, description="Arguments for the script: `$1`, `$2` and so on."
    )
    mounts: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Mount existing data, such as /data=claim:datasets/imagenet:ro; repeatable.",
        "Existing data to mount, by the path where the script finds it; the format depends on the "
        "cloud.",
        option="--mount",
        metavar="PATH=WHAT",
        of_machine=True,
    )
    options: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Set a cloud-specific option; KEY=@FILE reads the value from a file; repeatable.",
        "Cloud-specific options, by name.",
        option="--option",
        metavar="KEY=VALUE",
        of_machine=True,
    )
    stay: bool = argument(
        False,
        FLAG,
        "Keep the machine after the script until the task is deleted, idle or timed out.",
        "Whether machines stay after the script, until the task is destroyed, idle or timed out.",
        of=(TASK,),
    )
    idle_timeout: int = argument(
        0,
        DURATION,
        "With --stay, end machines that are idle for this long (default: no limit).",
        "With `stay`, seconds after which an idle machine ends; `0`: no limit.",
        of=(TASK,),
    )
    runner: Runner | None = None
    gang: bool = argument(
        False,
        FLAG,
        "Start all machines together, and all again if one is lost.",
        "Whether all machines start together, and all again if one is lost. `mpi` implies it.",
        of=(TASK,),
    )
    gang_timeout: int = argument(
        DEFAULT_GANG_TIMEOUT,
        DURATION,
        "Fail unless all machines of a gang are there in time (default: 30m).",
        "With `gang`, seconds until the task fails unless all machines are there.",
        of=(TASK, MPI),
    )
    mpi: Mpi | None = argument(
        None,
        FLAG,
        "Run the script once, with an mpirun that starts processes on all machines.",
        "Runs the script once, with an `mpirun` that starts processes on all machines: `slots`, "
        "processes per machine (default: `1`), and `implementation`, `openmpi`, `intel` or "
        f"`mpich` (default: `{IMPLEMENTATIONS[0]}`).",
        of=(TASK,),
    )
    files: Mapping[str, str] = argument(
        {},
        PAIRS,
        "Put a small file at this path of the machine or workdir; PATH=TEXT gives its text; "
        "repeatable.",
        "Small files, by absolute paths or paths in the workdir: up to 1 MiB together.",
        option="--file",
        metavar="PATH=@FILE",
        of=(TASK, MPI),
        shown=False,
    )
    warm: int = argument(
        0,
        DURATION,
        "Keep machines for this long after the end, for another run under the same name.",
        of=(TASK, MPI),
    )

    def __post_init__(self) -> None:
        if isinstance(self.arguments, list):
            object.__setattr__(self, "arguments", tuple(self.arguments))
        if isinstance(self.mpi, Mapping):
            with suppress(TypeError):  # what has other keys is left as it is, to be refused
                object.__setattr__(self, "mpi", Mpi(**self.mpi))
        if self.mpi is not None and self.gang is False:
            object.__setattr__(self, "gang", True)
        for name, each in arguments_of(Task).items():
            if each.kind is DURATION:
                in_seconds(self, name)
            elif each.kind is PAIRS:
                copied(self, name)
        refuse(self._problems())

    def _problems(self) -> Iterator[Problem]:
        if isinstance(self.script, str):
            yield from script_problems(self.script)
        yield from number_problems(
            self,
            "disk_size",
            "-1 (automatic) or at least 1 (GB)",
            low=1,
            high=LARGEST,
            also=-1,
        )
        yield from number_problems(
            self,
            "spot",
            "-1 (on demand), 0 (automatic price) or a maximum price in USD per hour",
            low=0,
            also=-1,
            kinds=(int, float),
        )
        yield from number_problems(
            self,
            "parallelism",
            f"a whole number from 1 to {MACHINES_AT_MOST}",
            low=1,
            high=MACHINES_AT_MOST,
        )
        yield from word_problems(self.arguments)
        yield from self._time_problems()
        if not isinstance(self.storage, Storage):
            yield Problem("storage", "must be a Storage")
        if isinstance(self.environment, Mapping):
            yield from environment_problems(self.environment)
        else:
            yield Problem("environment", "must be a map of names to values")
        yield from kind_problems(self, "", *_LIMITED, "environment", "files", "mpi")
        yield from Runner.problems(self.runner)
        yield from self._gang_problems()

    def _gang_problems(self) -> Iterator[Problem]:
        if self.gang is True and self.stay is True:
            yield Problem("stay", "cannot be combined with gang")
        yield from number_problems(
            self,
            "gang_timeout",
            "a number of seconds (at least 1) or a duration such as '30m'",
            low=1,
            high=LARGEST,
        )
        if self.warm and not self.name:
            yield Problem("warm", "requires name: it is how another run finds the machines")
        yield from Mpi.problems(self.mpi)
        yield from file_problems(self.files)

    def _time_problems(self) -> Iterator[Problem]:
        endless = self.stay is True or self.runner is not None
        least = "at least 1, or 0 for no limit" if endless else "at least 1"
        right = f"a number of seconds ({least}) or a duration such as '1h30m'"
        yield from number_problems(
            self, "timeout", right, low=1, high=LARGEST, also=0 if endless else None
        )
        yield from number_problems(
            self,
            "idle_timeout",
            "a number of seconds or a duration such as '1h30m'; 0: no limit",
            low=0,
            high=LARGEST,
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
