"""The results of a task: bringing them home, and whether all of them are."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError
from sojourn.core.events import Downloaded
from sojourn.core.filters import DEFAULT_IGNORED, Filters
from sojourn.core.guarded import guarded_name
from sojourn.core.interfaces import Place
from sojourn.core.sizes import size_of
from sojourn.engine import ledger
from sojourn.engine.home import Home, find_home
from sojourn.engine.lifecycle import require, unless_deleted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import ChangedFile, Cloud, Data
    from sojourn.core.task import Task

__all__ = ["Missed", "amend", "bring", "foreseen", "left_nothing", "lost_some", "missed", "pull"]


def pull(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    *,
    task: Task | None = None,
    into: Path | None = None,
    output: str | None = None,
) -> list[str]:
    """Bring the output home; returns what was written. The arguments are those of `find_home`."""
    require(ctx, cloud, id)
    data = cloud.data(id)
    with unless_deleted(ctx, cloud, id):
        home = find_home(ctx, data, id, task=task, into=into, output=output)
        if not home.output and not home.said:
            _tell_of_unclaimed(ctx, data, id)
        return bring(ctx, data, id, home)


def bring(ctx: Context, data: Data, id: TaskId, home: Home) -> list[str]:
    """Write the output of a task where it belongs; returns what was written."""
    if not home.output:
        return []
    with ctx.step("Downloading results"), _writing_home(id, home.folder):
        written = data.pull(ctx, home.output, home.folder, home.filters, ledger.pulled_path(id))
    folder = os.path.normpath(home.folder / home.output)
    ctx.emit(Downloaded(len(written), _size(home.folder, written), folder))
    if not written and not data.holds(ctx, home.output):
        ctx.warn(f"The output folder {home.output!r} is empty: nothing to download")
    return written


def _size(folder: Path, paths: Sequence[str]) -> int:
    size = 0
    for path in paths:
        with suppress(OSError):  # somebody may be at it already
            size += os.lstat(folder / path).st_size
    return size


@contextmanager
def _writing_home(id: TaskId, target: Path) -> Iterator[None]:
    """Says what can be done where the results cannot be written."""
    try:
        yield
    except OSError as error:
        path = str(error.filename or target)
        if os.path.basename(path).startswith(".sojourn-"):  # a file that has not its name yet
            path = os.path.dirname(path)
        raise SojournError(
            f"Could not write results to {path}: {error.strerror or error}",
            hint=f"Run `sojourn pull {id} --into FOLDER` to download them elsewhere.",
        ) from error


@dataclass(frozen=True)
class Missed:
    """What a task changed, and does not come home.

    `files`: in words; empty if there is nothing. `why`: why nobody but the user can tell whether
    they are wanted; empty if other results do come home. `output`: what would bring them.
    `outside`: they are outside the output that somebody chose, so whoever deletes the task by its
    name decides on them.
    """

    files: str = ""
    why: str = ""
    output: str = "."
    outside: bool = False


def missed(ctx: Context, data: Data, id: TaskId, home: Home, *, known: bool = True) -> Missed:
    """What a task changed in its workdir and does not come home.

    What was only uploaded is no result: an output with old files in it is as good as empty.
    `known`: whether the folder of `home` is the right one.
    """
    if home.said and not home.output:
        return Missed()
    into, memory = (home.folder, ledger.pulled_path(id)) if known else (None, None)
    changed = data.changed(ctx, home.output, home.filters, into, memory)
    if not home.output:
        return Missed(_described(changed), "has no output folder") if changed else Missed()
    withheld = [file for file in changed if file.place is Place.WITHHELD]
    if withheld:
        why = "programs on this computer could run them by themselves"
        return Missed(_described(withheld), why, guarded_name(withheld[0].path, home.output))
    own = [file for file in changed if file.place is Place.OWN]
    if own and len(own) == len(changed):
        folder = _own_folder(own[0].path)
        why = f"{folder} is here already, and was not uploaded"
        return Missed(_described(own), why, folder)
    outside = [file for file in changed if file.place is Place.OUTSIDE]
    if not outside:
        return Missed(_described(own), output=_own_folder(own[0].path)) if own else Missed()
    some_come = len(outside) < len(changed)
    why = "" if some_come else f"changed nothing in its output folder {home.output!r}"
    return Missed(_described(outside), why, outside=True)


def _own_folder(path: str) -> str:
    """The folder because of which a file stays in the store."""
    names = path.split("/")
    count = next(n for n, name in enumerate(names, 1) if name in DEFAULT_IGNORED)
    return "/".join(names[:count])


def _described(changed: Sequence[ChangedFile]) -> str:
    if not changed:
        return ""
    largest = max(changed, key=lambda file: file.size)
    size = size_of(sum(file.size for file in changed))
    if len(changed) == 1:
        return f"{largest.path} ({size})"
    return f"{len(changed)} new or changed files ({size}), such as {largest.path}"


def _tell_of_unclaimed(ctx: Context, data: Data, id: TaskId) -> None:
    found = _described(data.changed(ctx))
    if found:
        ctx.warn(
            f"Nothing to download: the task has no output folder, but left {found}. "
            f"Run `sojourn pull {id} --output .` to download everything."
        )


def left_nothing(ctx: Context, cloud: Cloud, id: TaskId, output: str | None = None) -> bool:
    """Whether a task has an output to bring home, and nothing is there."""
    data = cloud.data(id)
    output = output or data.load(ctx).storage.output
    return bool(output) and not data.holds(ctx, output or "")


def foreseen(ctx: Context, cloud: Cloud, id: TaskId, output: str | None = None) -> Missed:
    """What of a task would not come home, as far as can be told without the folder it comes to.

    `output`: another one than the task says.
    """
    data = cloud.data(id)
    storage = data.load(ctx).storage
    output = storage.output if output is None else output
    home = Home(Path(), output or "", Filters(storage.exclude), said=output is not None)
    return missed(ctx, data, id, home, known=False)


def lost_some(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether some of a task's output could not be stored. Absent: no."""
    return any(report.lost for report in cloud.data(id).reports(ctx) if report.outcome.final)


def amend(
    ctx: Context, cloud: Cloud, id: TaskId, output: str | None, exclude: tuple[str, ...]
) -> None:
    """Change what comes home of a task that exists."""
    data = cloud.data(id)
    task = data.load(ctx)
    storage = replace(task.storage, output=output, exclude=exclude)
    with ctx.step("Storing the task"):
        data.amend(ctx, replace(task, storage=storage))
    origin = ledger.find(id)
    if origin:
        ledger.remember(replace(origin, output=output, exclude=exclude))
