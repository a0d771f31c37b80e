"""What is said of a task beside its file: options, and keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TypedDict

from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from sojourn.taskfiles.reading import refusal, unknown

if TYPE_CHECKING:
    from os import PathLike

    from sojourn.core.gang import Mpi

__all__ = ["Fields", "changed"]


class Fields(TypedDict, total=False):
    """The fields of a task, and of its storage, as keyword arguments."""

    script: str
    cloud: str
    region: str
    machine: str
    disk_size: int
    spot: float
    image: str
    permission_set: str
    parallelism: int
    storage: Storage
    environment: Mapping[str, str]
    timeout: int | str
    tags: Mapping[str, str]
    name: str
    arguments: Sequence[str]
    mounts: Mapping[str, str]
    options: Mapping[str, str]
    stay: bool
    idle_timeout: int | str
    gang: bool
    gang_timeout: int | str
    mpi: Mpi | Mapping[str, Any] | None
    files: Mapping[str, str]
    warm: int | str
    workdir: str | PathLike[str]
    output: str
    exclude: Sequence[str]
    container: str
    container_opts: Mapping[str, str]
    default_ignore: bool


_STORAGE = tuple(Storage.__dataclass_fields__)
_TASK = tuple(name for name in Task.__dataclass_fields__ if name != "runner")  # launch sets it


def changed(task: Task, changes: Mapping[str, Any]) -> Task:
    """The same task with other fields, those of its storage by their own names.

    `environment` adds to the variables that the task has, and a map for `mpi` to what it says of
    MPI; all others replace.
    """
    problems = [unknown(name, _TASK + _STORAGE) for name in changes if name not in _TASK + _STORAGE]
    own = {name: value for name, value in changes.items() if name in _TASK}
    inner = {name: value for name, value in changes.items() if name in _STORAGE}
    try:
        if inner:
            own["storage"] = replace(own.get("storage", task.storage), **inner)
    except InvalidInput as error:
        problems += error.problems
    try:
        task = replace(task, **_merged(task, own)) if own else task
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise refusal(problems)
    return task


def _merged(task: Task, own: dict[str, Any]) -> dict[str, Any]:
    merged = dict(own)
    environment, mpi = own.get("environment"), own.get("mpi")
    if isinstance(environment, Mapping):
        merged["environment"] = {**task.environment, **environment}
    if isinstance(mpi, Mapping) and task.mpi:
        merged["mpi"] = {**asdict(task.mpi), **mpi}
    return merged
