"""Where the results of a task belong: in a folder that somebody on this computer chose.

The description of a task lies in its store. On some clouds its machines can rewrite it, so it does
not decide where this computer writes. These do, in this order: what the caller says, the task that
the caller has in hand, and what the ledger remembers of the very task that has its mark. What only
the description says counts if it is below the current folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput
from sojourn.core.filters import Filters
from sojourn.core.task import Storage
from sojourn.engine import ledger
from sojourn.engine.check import check_output, local_workdir

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Data
    from sojourn.core.task import Task

__all__ = ["Home", "created_here", "find_home"]


@dataclass(frozen=True)
class Home:
    """A folder on this computer, and what of a task comes into it.

    `output`: blank if nothing does. `said`: whether somebody said that nothing should.
    """

    folder: Path
    output: str
    filters: Filters
    said: bool = True


def find_home(
    ctx: Context,
    data: Data,
    id: TaskId,
    *,
    task: Task | None = None,
    into: Path | None = None,
    output: str | None = None,
) -> Home:
    """Where the results of a task belong; refused where only its store says so.

    `task`: as the caller asked for it. `into` and `output`: as the caller says now. A task that was
    never completely created raises NotFound.
    """
    described = data.load(ctx)  # also tells whether there is such a task
    storage = task.storage if task else _remembered(ctx, data, id)
    if into:
        folder = into.absolute()
    elif storage:
        folder = local_workdir(storage)
    else:
        folder = _believed(id, described.storage)
    storage = storage or described.storage
    if output:
        storage = replace(storage, output=Storage(output=output).output)
    if not into and not folder.is_dir() and storage.output:
        raise _refused(
            id, f"results belong in {folder}, but this folder does not exist on this computer"
        )
    check_output(folder, storage.output)
    return Home(
        folder, storage.output or "", Filters(storage.exclude), said=storage.output is not None
    )


def created_here(ctx: Context, data: Data, id: TaskId) -> bool:
    """Whether this computer created the task, and not only one of the same name."""
    return _origin(ctx, data, id) is not None


def _origin(ctx: Context, data: Data, id: TaskId) -> ledger.Origin | None:
    origin = ledger.find(id)
    return origin if origin and origin.mark in data.creators(ctx) else None


def _remembered(ctx: Context, data: Data, id: TaskId) -> Storage | None:
    origin = _origin(ctx, data, id)
    if origin is None:
        return None
    return Storage(workdir=origin.workdir, output=origin.output, exclude=origin.exclude)


def _believed(id: TaskId, described: Storage) -> Path:
    """What a description says of a folder, if the caller is in that folder or above it."""
    folder = local_workdir(described)
    if described.output and not _is_below(folder, Path.cwd()):
        raise _refused(
            id,
            "the task was not created on this computer, and its store says to write results to "
            f"{folder}, which is outside the current folder",
        )
    return folder


def _refused(id: TaskId, why: str) -> InvalidInput:
    error = InvalidInput("workdir", why)
    error.hint = f"Run `sojourn pull {id} --into FOLDER` to choose a folder."
    return error


def _is_below(folder: Path, top: Path) -> bool:
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(top))
