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
from sojourn.core.logpart import LogPart

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Unpack

    from sojourn.core.interfaces import ChangedFile, Cloud, Ignore, KeyPair, Machine
    from sojourn.core.report import Report
    from sojourn.core.status import State, Status
    from sojourn.core.task import Task
    from sojourn.engine.creation import Launch, Plan
    from sojourn.engine.ledger import Origin
    from sojourn.taskfiles.changes import Fields

__all__ = [
    "Handle",
    "Result",
    "check",
    "create",
    "gc",
    "get",
    "latest",
    "latest_deleted",
    "list_tasks",
    "load",
    "load_all",
    "overview",
    "plan",
    "run",
    "saved_log",
]

OnEvent = Callable[[Event], None]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Result:
    """How a task ended.

    `kept`: why it was not deleted; empty if it was. `log`: where its log was saved then.
    """

    id: str
    status: State
    exit_code: int | None
    reason: str
    kept: str = ""
    log: Path | None = None


class Handle:
    """A task that exists, or existed. Every verb can be repeated."""

    def __init__(
        self, cloud: Cloud, id: TaskId, ctx: Context | None = None, task: Task | None = None
    ) -> None:
        self._cloud = cloud
        self._id = id
        self._ctx = ctx or Context()
        self._task = task  # as this program asked for it; unlike the store's, nobody forged it

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

    def origin(self) -> Origin | None:
        """How this computer created it; None if it did not, or has forgotten."""
        return engine.ledger.find(self._id)

    def created(self) -> str:
        """When it was created, in UTC; empty if nobody knows."""
        return self._cloud.data(self._id).created(self._ctx)

    def logs(
        self,
        *,
        follow: bool = False,
        rank: int | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        since: datetime | None = None,
    ) -> Iterator[LogLine]:
        """What was printed; with `follow`, goes on until the task has ended.

        `tail`: the last so many lines of what there is. `since`: no lines from before.
        """
        from sojourn.core.clock import utc  # most commands have no time to look at

        if tail is not None and tail < 0:
            raise InvalidInput("tail", f"must be at least 0, got {tail}")
        reading = engine.observe.follow if follow else engine.observe.logs
        part = LogPart(rank, attempt, tail, utc(since) if since else "")
        yield from reading(self._ctx, self._cloud, self._id, part)

    def wait(self) -> Result:
        """Wait until it has ended."""
        for _ in engine.observe.follow(self._ctx, self._cloud, self._id):
            pass
        return self._result()

    def pull(self, into: str | Path | None = None, *, output: str | None = None) -> list[str]:
        """Bring the output home; works at any time. Returns the paths that were written.

        `output`: another part of the workdir than the task says.
        """
        return engine.results.pull(
            self._ctx,
            self._cloud,
            self._id,
            task=self._task,
            into=Path(into) if into else None,
            output=output,
        )

    def amend(self, *, output: str | None, exclude: Sequence[str]) -> None:
        """Change what comes home, and which files are transferred in neither direction."""
        engine.results.amend(self._ctx, self._cloud, self._id, output, tuple(exclude))
        self._task = None

    def left_nothing(self, output: str | None = None) -> bool:
        """Whether there is an output to bring home, and the task left nothing there.

        `output`: another one than the task says.
        """
        return engine.results.left_nothing(self._ctx, self._cloud, self._id, output)

    def changed(self) -> list[ChangedFile]:
        """Files in its workdir that are new or differ from what was uploaded, caches aside."""
        return self._cloud.data(self._id).changed(self._ctx)

    def lost_some(self) -> bool:
        """Whether some of its output could not be stored, and may still be on a machine."""
        return engine.results.lost_some(self._ctx, self._cloud, self._id)

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
        output: str | None = None,
        fetch: bool = True,
        force: bool = False,
    ) -> None:
        """Bring the output home and remove everything; of a task that is gone, nothing is left.

        `fetch=False` discards the results. `force` removes everything even if they cannot be
        brought home.
        """
        engine.removal.delete(
            self._ctx,
            self._cloud,
            self._id,
            task=self._task,
            into=Path(into) if into else None,
            output=output,
            fetch=fetch,
            force=force,
        )

    def conclude(
        self, status: Status | None = None, *, keep: bool = False, keep_failed: bool = False
    ) -> Result:
        """Bring the output home and delete it, unless there is a reason to keep it: see `run`.

        `status`: as it was seen last. A task that is gone raises NotFound.
        """
        now = status or self.status()
        kept = engine.removal.conclude(
            self._ctx,
            self._cloud,
            self._id,
            now.state,
            task=self._task,
            keep=keep,
            keep_failed=keep_failed,
        )
        log = None if kept else engine.ledger.log_path(self._id)
        return Result(self.id, now.state, now.exit_code, now.reason, kept, log)

    def __repr__(self) -> str:
        return f"Handle({self.id!r}, cloud={self.cloud!r})"

    def _result(self) -> Result:
        now = self.status()
        return Result(self.id, now.state, now.exit_code, now.reason)


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
    task = _task(task, changes)
    ctx = ctx or _context(on_event)
    _tell_of_missing(ctx, task)
    engine.creation.check(ctx, clouds.load(task.cloud), _anchored(task))


def plan(
    task: Task | str | os.PathLike[str],
    *,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> Plan:
    """What `create` would upload and make; checks the same, and makes nothing."""
    task = _task(task, changes)
    ctx = ctx or _context(on_event)
    return engine.creation.plan(ctx, clouds.load(task.cloud), _launch(ctx, task, None, gitignore))


def create(
    task: Task | str | os.PathLike[str],
    *,
    id: TaskId | None = None,
    gitignore: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> Handle:
    """Make everything a task needs, upload its workdir and start it.

    `task`: or the path of its file, as `load` takes it. `changes`: fields that are to be other
    than in the task. `id`: that of an earlier creation, to go on with it.
    """
    task = _task(task, changes)
    ctx = ctx or _context(on_event)
    cloud = clouds.load(task.cloud)
    launch = _launch(ctx, task, id, gitignore)
    engine.creation.create(ctx, cloud, launch)
    return Handle(cloud, launch.id, ctx, launch.task)


def _launch(ctx: Context, task: Task, id: TaskId | None, gitignore: bool) -> Launch:
    _tell_of_missing(ctx, task)
    return engine.creation.Launch(
        id or TaskId.for_name(task.name, os.environ),
        _anchored(task),
        resolve_environment(task.environment, os.environ),
        _ignore(task, gitignore),
        gitignore,
    )


def run(
    task: Task | str | os.PathLike[str],
    *,
    gitignore: bool = False,
    keep: bool = False,
    keep_failed: bool = False,
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    **changes: Unpack[Fields],
) -> Result:
    """Create, wait, bring the results home, delete. The log goes to `on_event`.

    `task` and `changes` are as in `create`.

    A task that somebody stopped meanwhile stays, to be resumed or deleted. So does one whose
    results may not all be home: it succeeded and left nothing in its output, or it left files and
    nobody said what its output is, or some of its output could not be stored. `keep` keeps it in
    any case, `keep_failed` if it failed or timed out. `Result.kept` says why.
    """
    ctx = ctx or _context(on_event)
    handle = create(task, gitignore=gitignore, ctx=ctx, **changes)
    for line in handle.logs(follow=True):
        ctx.emit(line)
    return handle.conclude(keep=keep, keep_failed=keep_failed)


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
        raise InvalidInput("id", f"{id!r} matches every task; use more of the ID")
    if not found:
        raise _missing(id, missed)
    _warn_of(ctx, missed)
    meant = _only(id, [handle._id for handle in found])
    return next(handle for handle in found if handle._id == meant)


def _only(text: str, found: Sequence[TaskId]) -> TaskId:
    """The one of these tasks that somebody means who typed this; a whole name wins."""
    name = normalise(text.removeprefix("tpi-"))
    named = [id for id in found if id.name == name]  # noqa: A001
    if len(named) == 1:
        return named[0]
    if len(found) > 1:
        names = ", ".join(map(str, found))
        raise InvalidInput("id", f"{text!r} matches multiple tasks: {names}; use more of the ID")
    return found[0]


def saved_log(id: str) -> tuple[str, Path] | None:
    """The id and the saved log of a task that was deleted; None if there is none.

    `id` may be shortened while it is unique among these.
    """
    found = [] if _all_begin_with(id) else [i for i in engine.ledger.logged() if _means(id, i)]
    if not found:
        return None
    meant = _only(id, found)
    return str(meant), engine.ledger.log_path(meant)


def latest(
    folder: str | Path = ".", *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> Handle:
    """The last task that this computer created in a folder."""
    ctx = ctx or _context(on_event)
    origin = engine.ledger.latest(Path(folder))
    if origin is None:
        raise NotFound(
            f"No task was created in {Path(folder).absolute()}",
            hint="Specify a task ID. Run `sojourn list` to see all tasks.",
        )
    return Handle(clouds.load(origin.cloud), TaskId.parse(origin.id), ctx)


def latest_deleted(folder: str | Path = ".") -> str | None:
    """The id of the last task that this computer created in a folder, if it was deleted since."""
    origin = engine.ledger.latest_deleted(Path(folder))
    return origin.id if origin else None


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
        return kind(f"Could not find task {id}. {missed[0].message}", hint=missed[0].hint)
    hint = "Run `sojourn list` to see all tasks."
    others = clouds.not_set_up()
    if others:
        hint += f" Not searched (not set up on this computer): {', '.join(others)}."
    return NotFound(f"Task {id} not found", hint=hint)


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
            error.message = f"Could not reach {cloud.name}: {error.message}"
            missed.append(error)


def _warn_of(ctx: Context, missed: Sequence[SojournError]) -> None:
    for error in missed:
        ctx.warn(str(error))


def _tell_of_missing(ctx: Context, task: Task) -> None:
    for name in not_here(task.environment, os.environ):
        ctx.warn(f"environment.{name}: not set on this computer; leaving it empty")


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
    rules = engine.gitignore.IgnoreRules(workdir, git=gitignore)
    own = _own_folders(workdir)
    if not own:
        return rules

    def ignore(path: str, *, folder: bool) -> bool:
        return path in own or rules(path, folder=folder)

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
