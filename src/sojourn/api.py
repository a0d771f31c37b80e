"""Every verb, once: what the command line, Terraform and Python programs call.

Nothing here prints or exits. Events go to `on_event`; errors are those of `sojourn.core.errors`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn import clouds, engine
from sojourn.core.context import Context
from sojourn.core.environment import not_here, resolve_environment
from sojourn.core.errors import (
    AuthError,
    InvalidInput,
    MissingDependency,
    NotFound,
    SojournError,
    Transient,
)
from sojourn.core.events import CloudEvent, Event, LogLine
from sojourn.core.ids import TaskId, normalise

if TYPE_CHECKING:
    from sojourn.core.interfaces import Cloud, Ignore, KeyPair, Machine
    from sojourn.core.report import Report
    from sojourn.core.status import State, Status
    from sojourn.core.task import Task

__all__ = [
    "Handle",
    "Result",
    "check",
    "create",
    "gc",
    "get",
    "latest",
    "list_tasks",
    "overview",
    "run",
]

OnEvent = Callable[[Event], None]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Result:
    """How a task ended."""

    id: str
    status: State
    exit_code: int | None
    reason: str


class Handle:
    """A task that exists, or existed. Every verb can be repeated."""

    def __init__(self, cloud: Cloud, id: TaskId, ctx: Context | None = None) -> None:
        self._cloud = cloud
        self._id = id
        self._ctx = ctx or Context()

    @property
    def id(self) -> str:
        """The task's id, good in any shell."""
        return str(self._id)

    @property
    def cloud(self) -> str:
        """The name of the cloud it is in."""
        return self._cloud.name

    def exists(self) -> bool:
        """Whether anything of it is there."""
        return engine.lifecycle.exists(self._ctx, self._cloud, self._id)

    def task(self) -> Task:
        """What was asked for, without the environment's values."""
        return self._cloud.data(self._id).load(self._ctx)

    def status(self) -> Status:
        """Its state now."""
        return engine.observe.status(self._ctx, self._cloud, self._id)

    def machines(self) -> list[Machine]:
        """The machines that are alive now."""
        fleet = self._cloud.scaler(self._id).fleet(self._ctx)
        return list(fleet.machines) if fleet else []

    def events(self) -> list[CloudEvent]:
        """What the scaler tells of itself."""
        return self._cloud.scaler(self._id).events(self._ctx)

    def keys(self) -> KeyPair | None:
        """What opens its machines by SSH: whoever has it is root there. None on some clouds."""
        return self._cloud.scaler(self._id).keys(self._ctx)

    def reports(self) -> list[Report]:
        """How each attempt that is over ended."""
        return self._cloud.data(self._id).reports(self._ctx)

    def logs(
        self, *, follow: bool = False, rank: int | None = None, attempt: int | None = None
    ) -> Iterator[LogLine]:
        """What was printed; with `follow`, goes on until the task has ended."""
        reading = engine.observe.follow if follow else engine.observe.logs
        for line in reading(self._ctx, self._cloud, self._id):
            if rank in (None, line.rank) and attempt in (None, line.attempt):
                yield line

    def wait(self) -> Result:
        """Wait until it has ended."""
        for _ in engine.observe.follow(self._ctx, self._cloud, self._id):
            pass
        return self._result()

    def pull(self, into: str | Path | None = None, *, output: str = "") -> list[str]:
        """Bring the output home; works at any time. Returns the paths that were written.

        `output`: another part of the workdir than the task says.
        """
        target = Path(into) if into else None
        return engine.lifecycle.pull(self._ctx, self._cloud, self._id, target, output)

    def amend(self, *, output: str, exclude: Sequence[str]) -> None:
        """Change what comes home, and which files are transferred in neither direction."""
        engine.lifecycle.amend(self._ctx, self._cloud, self._id, output, tuple(exclude))

    def left_nothing(self, output: str = "") -> bool:
        """Whether there is an output to bring home, and the task left nothing there.

        `output`: another one than the task says.
        """
        return engine.lifecycle.left_nothing(self._ctx, self._cloud, self._id, output)

    def lost_some(self) -> bool:
        """Whether some of its output could not be stored, and may still be on a machine."""
        return engine.lifecycle.lost_some(self._ctx, self._cloud, self._id)

    def stop(self) -> None:
        """Take its machines away; `start` resumes from the last snapshot."""
        engine.lifecycle.stop(self._ctx, self._cloud, self._id)

    def start(self) -> None:
        """Resume what was stopped."""
        engine.lifecycle.start(self._ctx, self._cloud, self._id)

    def interrupt(self, rank: int | None = None, *, notice: bool = True) -> list[str]:
        """Take a machine away as a spot market does; returns the machines."""
        return engine.lifecycle.interrupt(self._ctx, self._cloud, self._id, rank, notice=notice)

    def delete(
        self,
        *,
        into: str | Path | None = None,
        output: str = "",
        fetch: bool = True,
        force: bool = False,
    ) -> None:
        """Bring the output home and remove everything."""
        engine.lifecycle.delete(
            self._ctx,
            self._cloud,
            self._id,
            into=Path(into) if into else None,
            output=output,
            fetch=fetch,
            force=force,
        )

    def __repr__(self) -> str:
        return f"Handle({self.id!r}, cloud={self.cloud!r})"

    def _result(self) -> Result:
        now = self.status()
        return Result(self.id, now.state, now.exit_code, now.reason)


def check(task: Task, *, on_event: OnEvent | None = None, ctx: Context | None = None) -> None:
    """Refuse what could not be created; makes nothing."""
    ctx = ctx or _context(on_event)
    _tell_of_missing(ctx, task)
    engine.creation.check(ctx, clouds.load(task.cloud), _anchored(task))


def create(
    task: Task,
    *,
    id: TaskId | None = None,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> Handle:
    """Make everything a task needs, upload its workdir and start it.

    `id`: that of an earlier creation, to go on with it.
    """
    ctx = ctx or _context(on_event)
    cloud = clouds.load(task.cloud)
    id = id or TaskId.for_name(task.name, os.environ)  # noqa: A001
    _tell_of_missing(ctx, task)
    environment = resolve_environment(task.environment, os.environ)
    launch = engine.creation.Launch(id, _anchored(task), environment, _ignore(task, gitignore))
    engine.creation.create(ctx, cloud, launch)
    return Handle(cloud, id, ctx)


def run(
    task: Task,
    *,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> Result:
    """Create, wait, bring the results home, delete. The log goes to `on_event`.

    A task that somebody stopped meanwhile stays, to be resumed or deleted. So does one that
    succeeded and left nothing in its output, for it may have written its results elsewhere, and
    one of whose output not all could be stored.
    """
    ctx = ctx or _context(on_event)
    handle = create(task, gitignore=gitignore, ctx=ctx)
    for line in handle.logs(follow=True):
        ctx.emit(line)
    result = handle._result()
    engine.lifecycle.conclude(ctx, handle._cloud, handle._id, result.status)
    return result


def get(
    id: str, *, cloud: str = "", on_event: OnEvent | None = None, ctx: Context | None = None
) -> Handle:
    """The task of this id, which may be shortened while it is unique; a whole name wins.

    `cloud`: where it is. Then the id must be whole, and nothing is looked up: it may be gone.
    """
    ctx = ctx or _context(on_event)
    if cloud:
        return Handle(clouds.load(cloud), TaskId.parse(id), ctx)
    missed: list[SojournError] = []
    if TaskId.looks_like(id):
        found = _with_id(ctx, TaskId.parse(id), missed)  # refuses what is mistyped
    else:
        found = [handle for handle in _tasks(ctx, missed) if _means(id, handle._id)]
    if not found and _all_begin_with(id):
        raise InvalidInput("id", f"{id!r} is how every id begins; give more of it")
    if not found:
        raise _missing(id, missed)
    _warn_of(ctx, missed)
    name = normalise(id.removeprefix("tpi-"))
    named = [handle for handle in found if handle._id.name == name]
    if len(named) == 1:
        return named[0]
    if len(found) > 1:
        names = ", ".join(handle.id for handle in found)
        raise InvalidInput("id", f"{id!r} could be any of: {names}; give more of it")
    return found[0]


def latest(
    folder: str | Path = ".", *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> Handle:
    """The last task that this computer created in a folder."""
    ctx = ctx or _context(on_event)
    origin = engine.ledger.latest(Path(folder))
    if origin is None:
        raise NotFound(
            f"No task was created in {Path(folder).absolute()}",
            hint="Give the ID of a task; `sojourn list` shows all tasks.",
        )
    return Handle(clouds.load(origin.cloud), TaskId.parse(origin.id), ctx)


def _with_id(ctx: Context, id: TaskId, missed: list[SojournError]) -> list[Handle]:
    """No list is needed, and what is left of a task may be too little to be listed."""

    def found(cloud: Cloud) -> list[Handle]:
        there = engine.lifecycle.exists(ctx, cloud, id)
        return [Handle(cloud, id, ctx)] if there else []

    return list(islice(_each_cloud(found, missed), 1))


def _missing(id: str, missed: list[SojournError]) -> SojournError:
    """A task that was not found; it may be where nobody could look."""
    if missed:
        kind = AuthError if isinstance(missed[0], AuthError) else Transient
        return kind(f"{id} was not found, but {missed[0].message}", hint=missed[0].hint)
    hint = "`sojourn list` shows all there are."
    others = clouds.not_set_up()
    if others:
        hint += f" Not set up on this computer, and not asked: {', '.join(others)}."
    return NotFound(f"There is no task {id}", hint=hint)


def list_tasks(*, on_event: OnEvent | None = None, ctx: Context | None = None) -> list[Handle]:
    """All tasks, of all clouds that can be asked."""
    ctx = ctx or _context(on_event)
    missed: list[SojournError] = []
    found = _tasks(ctx, missed)
    _warn_of(ctx, missed)
    return found


def _tasks(ctx: Context, missed: list[SojournError]) -> list[Handle]:
    def tasks(cloud: Cloud) -> list[Handle]:
        return [Handle(cloud, id, ctx) for id in cloud.tasks(ctx)]  # noqa: A001

    return list(_each_cloud(tasks, missed))


def overview(
    *,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    missed: list[SojournError] | None = None,
) -> list[tuple[Handle, Status]]:
    """All tasks with their states, of all clouds that can be asked; from as few calls as it takes.

    `Handle.status` tells more of one: which machine has which rank, and what keeps it waiting.
    `missed` gets an error for each cloud that could not be asked.
    """
    ctx = ctx or _context(on_event)
    missed = [] if missed is None else missed

    def found(cloud: Cloud) -> list[tuple[Handle, Status]]:
        ids = list(cloud.tasks(ctx))
        if not ids:
            return []  # and the engine is not even loaded
        seen = engine.observe.overview(ctx, cloud, ids)
        return [(Handle(cloud, id, ctx), status) for id, status in seen]  # noqa: A001

    rows = list(_each_cloud(found, missed))
    _warn_of(ctx, missed)
    return rows


def gc(*, on_event: OnEvent | None = None, ctx: Context | None = None) -> list[tuple[Handle, str]]:
    """Tasks that finished or were never completed, and why they could be deleted."""
    ctx = ctx or _context(on_event)

    def garbage(cloud: Cloud) -> list[tuple[Handle, str]]:
        found = engine.gc.garbage(ctx, cloud)
        return [(Handle(cloud, item.id, ctx), item.reason) for item in found]

    missed: list[SojournError] = []
    rows = list(_each_cloud(garbage, missed))
    _warn_of(ctx, missed)
    return rows


def _each_cloud(ask: Callable[[Cloud], list[_T]], missed: list[SojournError]) -> Iterator[_T]:
    """One that cannot be asked must not hide what is in the others."""
    for cloud in clouds.set_up():
        try:
            yield from ask(cloud)
        except (AuthError, MissingDependency, Transient) as error:
            error.message = f"{cloud.name} could not be asked. {error.message}"
            missed.append(error)


def _warn_of(ctx: Context, missed: Sequence[SojournError]) -> None:
    for error in missed:
        ctx.warn(str(error))


def _tell_of_missing(ctx: Context, task: Task) -> None:
    for name in not_here(task.environment, os.environ):
        ctx.warn(f"environment.{name}: there is no such variable here, so it stays empty")


def _context(on_event: OnEvent | None) -> Context:
    return Context(on_event) if on_event else Context()


def _anchored(task: Task) -> Task:
    """The same, with a workdir that other shells find as well."""
    if not task.storage.workdir and not task.storage.output:
        return task
    workdir = os.path.abspath(task.storage.workdir) if task.storage.workdir else ""
    return replace(task, storage=replace(task.storage, workdir=workdir))


def _ignore(task: Task, gitignore: bool) -> Ignore | None:
    if not task.storage.workdir:
        return None
    workdir = Path(task.storage.workdir)
    rules = engine.gitignore.GitIgnore(workdir) if gitignore else None
    own = _own_folders(workdir)
    if not own:
        return rules

    def ignore(path: str, *, folder: bool) -> bool:
        return path in own or bool(rules and rules(path, folder=folder))

    return ignore


def _own_folders(workdir: Path) -> set[str]:
    """What Sojourn keeps below this folder, if it is a home: tasks, with their secrets."""
    from sojourn.clouds.local.folders import data_root, machines_root
    from sojourn.core.userfolders import state_home

    roots = (data_root().parent, machines_root().parent, state_home() / "sojourn")
    paths = {os.path.relpath(os.path.realpath(root), os.path.realpath(workdir)) for root in roots}
    return {path for path in paths if path != "." and not path.startswith("../") and path != ".."}


def _all_begin_with(text: str) -> bool:
    """Whether it tells nothing of one task. It is never taken for the only one that there is."""
    return "tpi-".startswith(text) or not normalise(text.removeprefix("tpi-"))


def _means(text: str, id: TaskId) -> bool:
    parts = {text.removeprefix("tpi-"), normalise(text)} - {"", "tpi"}
    whole = str(id).removeprefix("tpi-")
    return any(whole.startswith(part) or id.short.startswith(part) for part in parts)
