"""What can only be checked where the files are, before anything is made."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.gang import absolute

if TYPE_CHECKING:
    from sojourn.core.interfaces import Cloud, Features
    from sojourn.core.task import Storage, Task

__all__ = ["check_features", "check_form", "check_output", "check_storage", "local_workdir"]


def local_workdir(storage: Storage) -> Path:
    """Where results come home to: the workdir, or the current folder if there is none."""
    return Path(storage.workdir or ".").absolute()


def check_storage(storage: Storage) -> None:
    """Refuse a workdir that cannot be uploaded and an output that leads out of it."""
    workdir = local_workdir(storage)
    if storage.workdir:
        if not workdir.exists():
            raise InvalidInput("storage.workdir", f"folder {workdir} not found; create it first")
        if not workdir.is_dir():
            raise InvalidInput("storage.workdir", f"{workdir} is not a folder; choose a folder")
        if not os.access(workdir, os.R_OK | os.X_OK):
            raise InvalidInput(
                "storage.workdir",
                f"{workdir} is not readable; run `chmod u+rx {shlex.quote(str(workdir))}`",
            )
    check_output(workdir, storage.output)


def check_form(cloud: Cloud, task: Task) -> None:
    """Refuse what the task itself shows to be wrong; makes no call, and looks at no file."""
    check_features(task, cloud.features)
    cloud.check_form(task)


def check_features(task: Task, features: Features) -> None:
    """Refuse what only other clouds can do."""
    if task.mpi and task.mpi.implementation not in features.mpi:
        raise InvalidInput(
            "mpi.implementation",
            f"must be {' or '.join(features.mpi)} on this cloud, got {task.mpi.implementation!r}",
        )
    if task.warm and not features.warm:
        raise InvalidInput("warm", "not supported on this cloud, which starts each run anew")
    for path in () if features.private_machines else absolute(task.files):
        raise InvalidInput(
            "files",
            f"{path} would be written to this computer; use a path in the workdir, "
            f"such as {path.rpartition('/')[2]}",
        )


def check_output(workdir: Path, output: str | None) -> None:
    """Refuse an output that leads out of the folder that it should be in."""
    if output and not _stays_inside(workdir, workdir / output):
        raise InvalidInput(
            "storage.output",
            f"{output!r} is a symlink that points outside {workdir}; choose a folder inside",
        )


def _stays_inside(workdir: Path, output: Path) -> bool:
    return Path(os.path.realpath(output)).is_relative_to(os.path.realpath(workdir))
