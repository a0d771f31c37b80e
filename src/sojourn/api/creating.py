"""Making tasks: from a description or the path of one to a task that runs."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn import clouds, engine
from sojourn.api.handle import Handle
from sojourn.api.telling import OnEvent, context_for
from sojourn.core import userfolders
from sojourn.core.environment import not_here, resolve_environment
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Unpack

    from sojourn.core.context import Context
    from sojourn.core.task import Task
    from sojourn.engine.creation import Launch, Plan
    from sojourn.engine.gitignore import IgnoreRules
    from sojourn.taskfiles.changes import Fields

__all__ = ["check", "check_form", "create", "launch_of", "load", "load_all", "make", "plan"]

_H = TypeVar("_H", bound=Handle)


def load(path: str | os.PathLike[str], **changes: Unpack[Fields]) -> Task:
    """The one task of a file: a script, a task.yaml or a main.tf.

    `changes`: fields of the task, and of its storage, that are to be other than in the file.
    """
    found = load_all(path, **changes)
    if len(found) > 1:
        raise InvalidInput(
            "path", f"{path} has multiple tasks ({', '.join(found)}); use load_all to load them all"
        )
    return next(iter(found.values()))


def load_all(path: str | os.PathLike[str], **changes: Unpack[Fields]) -> dict[str, Task]:
    """All tasks of a file, by the labels of their blocks; a script or YAML file has one."""
    # The readers of files are loaded when one is read.
    from sojourn.taskfiles import read_tasks
    from sojourn.taskfiles.changes import changed

    return {found.label: changed(found.task, changes) for found in read_tasks(Path(path))}


def _task(task: Task | str | os.PathLike[str], changes: Fields) -> Task:
    if isinstance(task, str) and task.startswith("#!"):
        raise InvalidInput(
            "task", "must be a path, got the text of a script; use sojourn.Task(script=...)"
        )
    if isinstance(task, str | os.PathLike):
        return load(task, **changes)
    if not changes:
        return task
    from sojourn.taskfiles.changes import changed

    return changed(task, changes)


def check(
    task: Task | str | os.PathLike[str],
    *,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> None:
    """Refuse what could not be created; makes nothing."""
    task = clouds.placed(_task(task, changes))
    ctx = ctx or context_for(on_event)
    _tell_of_missing(ctx, task)
    engine.creation.check(ctx, clouds.load(task.cloud), _anchored(task))


def check_form(task: Task) -> None:
    """Refuse what the task itself shows to be wrong: needs no SDK, and makes no call."""
    from sojourn.engine import check as checking  # a list of tasks needs no engine

    checking.check_form(clouds.plain(task.cloud), clouds.placed(task))


def plan(
    task: Task | str | os.PathLike[str],
    *,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> Plan:
    """What `create` would upload and make; checks the same, and makes nothing."""
    task = clouds.placed(_task(task, changes))
    ctx = ctx or context_for(on_event)
    return engine.creation.plan(ctx, clouds.load(task.cloud), launch_of(ctx, task, None, gitignore))


def create(
    task: Task | str | os.PathLike[str],
    *,
    id: TaskId | None = None,
    gitignore: bool = False,
    command: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> Handle:
    """Make everything a task needs, upload its workdir and start it.

    A task with a name that kept its machines `warm` after its last run uses them again.

    `task`: or the path of its file, as `load` takes it. `changes`: fields that are to be other
    than in the task. `id`: that of an earlier creation, to go on with it. `command`: what lists
    show of it, instead of how its script begins.
    """
    task = clouds.placed(_task(task, changes))
    ctx = ctx or context_for(on_event)
    cloud = clouds.load(task.cloud)
    launch = replace(launch_of(ctx, task, id, gitignore), command=command)
    again = task.warm and task.name and engine.again.run_again(ctx, cloud, launch)
    made = not again and engine.creation.create(ctx, cloud, launch)
    return Handle(cloud, launch.id, ctx, launch.task, made=made)


def make(
    kind: type[_H],
    ctx: Context,
    task: Task,
    until: Callable[[_H], None],
    *,
    id: TaskId | None = None,
    gitignore: bool = False,
    environment: Mapping[str, str] | None = None,
    programs: Mapping[str, Path] | None = None,
) -> _H:
    """The same for what is more than a task, as a handle of its kind. If `until` fails, which
    waits for it to be of use, it is removed again.

    `environment`: what it gets beside its own. `programs`: see `Launch`.
    """
    launch = launch_of(ctx, task, id, gitignore)
    launch = replace(launch, programs=programs or {})
    launch.environment.update(environment or {})
    cloud = clouds.load(task.cloud)
    handle = kind(cloud, launch.id, ctx, launch.task)
    engine.creation.create(ctx, cloud, launch, partial(until, handle))
    return handle


def launch_of(ctx: Context, task: Task, id: TaskId | None, gitignore: bool) -> Launch:
    """All that creating a task needs, from this computer."""
    task = clouds.placed(task)
    _tell_of_missing(ctx, task)
    return engine.creation.Launch(
        id or TaskId.for_name(task.name, os.environ),
        _anchored(task),
        # What CI has set is for jobs of its own, which a runner gets from its forge.
        _revision(task) | resolve_environment(task.environment, os.environ, ci=not task.runner),
        _ignore(task, gitignore),
        gitignore,
    )


def _tell_of_missing(ctx: Context, task: Task) -> None:
    for name in not_here(task.environment, os.environ):
        ctx.warn(f"environment.{name}: not set on this computer; leaving it empty")


def _anchored(task: Task) -> Task:
    """The same, with a workdir that other shells find as well."""
    if not task.storage.workdir and not task.storage.output:
        return task
    workdir = os.path.abspath(task.storage.workdir) if task.storage.workdir else ""
    return replace(task, storage=replace(task.storage, workdir=workdir))


def _revision(task: Task) -> dict[str, str]:
    """Which commit the workdir has; what the task's own environment says of it wins."""
    workdir = task.storage.workdir
    return engine.revision.revision(Path(workdir), os.environ) if workdir else {}


def _ignore(task: Task, gitignore: bool) -> IgnoreRules | None:
    if not task.storage.workdir:
        return None
    workdir = Path(task.storage.workdir)
    return engine.gitignore.IgnoreRules(
        workdir,
        git=gitignore,
        default=task.storage.default_ignore,
        never=_own_folders(workdir),
    )


def _own_folders(workdir: Path) -> set[str]:
    """What Sojourn keeps below this folder, if it is a home: tasks, with their secrets.

    And what settings name: folders of tasks, and files with credentials.
    """
    homes = (userfolders.data_home(), userfolders.cache_home(), userfolders.state_home())
    roots = [*(str(home / "sojourn") for home in homes), *clouds.own_paths()]
    top = os.path.realpath(workdir)
    paths = {os.path.relpath(os.path.realpath(root), top) for root in roots}
    return {path for path in paths if path != "." and not path.startswith("../") and path != ".."}
