"""Finding tasks again, in all clouds that this computer is set up for."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn import clouds, engine
from sojourn.api.handle import Handle
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import (
    LIST_ALL,
    AuthError,
    Cancelled,
    InvalidInput,
    MissingDependency,
    NotFound,
    SojournError,
    Transient,
)
from sojourn.core.ids import TaskId, normalise
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud
    from sojourn.core.status import Status
    from sojourn.core.task import Task
    from sojourn.engine.gc import Garbage
    from sojourn.engine.ledger import Ending

__all__ = [
    "described",
    "each_cloud",
    "ending",
    "garbage",
    "gc",
    "get",
    "is_remembered",
    "latest",
    "latest_deleted",
    "list_tasks",
    "name_of",
    "of_all",
    "overview",
    "saved_log",
    "was_deleted",
]

_AT_ONCE = 16
_T = TypeVar("_T")


def get(
    id: str, *, cloud: str = "", on_event: OnEvent | None = None, ctx: Context | None = None
) -> Handle:
    """The task of this id, which may be shortened while it is unique; a whole name wins.

    `cloud`: where it is. Then the id must be whole, and nothing is looked up: it may be gone.
    """
    ctx = ctx or context_for(on_event)
    if cloud:
        return Handle(clouds.load(cloud), TaskId.parse(id), ctx)
    missed: list[SojournError] = []
    if TaskId.looks_like(id):
        found = _with_id(ctx, TaskId.parse(id), missed)  # refuses what is mistyped
    else:
        found = [
            handle
            for handle in each_cloud(partial(_tasks, ctx), missed)
            if _means(id, TaskId.parse(handle.id))
        ]
    if not found and _all_begin_with(id):
        raise InvalidInput("id", f"{id!r} matches every task; use more of the ID")
    if not found:
        raise _missing(id, missed)
    _warn_of(ctx, missed)
    meant = _only(id, [*dict.fromkeys(TaskId.parse(handle.id) for handle in found)])
    same = [handle for handle in found if handle.id == str(meant)]
    # A name gives the same id on every cloud: the one that this computer created last is meant.
    return next((handle for handle in same if handle.cloud == _cloud_of(meant)), same[0])


def _cloud_of(id: TaskId) -> str:
    """Where this computer created a task; empty if it did not."""
    origin = engine.ledger.find(id)
    return origin.cloud if origin else ""


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


def ending(id: str) -> tuple[str, Ending] | None:
    """The id of a task that was deleted, and how it ended; None if this computer does not know.

    `id` may be shortened as for `saved_log`.
    """
    saved = saved_log(id)
    known = engine.ledger.ending(saved[0]) if saved else None
    return (saved[0], known) if saved and known else None


def name_of(id: str) -> str:
    """The name of a task; its id if this computer knows two of that name, or if it is none."""
    try:
        return engine.ledger.short(TaskId.parse(id))
    except InvalidInput:
        return id


def is_remembered(id: str) -> bool:
    """Whether this computer created a task and has not deleted it."""
    return engine.ledger.find(id) is not None


def was_deleted(id: str) -> bool:
    """Whether this computer created a task and deleted it."""
    return engine.ledger.was_deleted(TaskId.parse(id))


def latest(
    folder: str | Path = ".", *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> Handle:
    """The last task that this computer created in a folder."""
    ctx = ctx or context_for(on_event)
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

    return list(islice(each_cloud(found, missed, first=_cloud_of(id)), 1))


def _missing(id: str, missed: list[SojournError]) -> SojournError:
    """A task that was not found; it may be where nobody could look."""
    if missed:
        kind = AuthError if isinstance(missed[0], AuthError) else Transient
        return kind(f"Could not find task {id}. {missed[0].message}", hint=missed[0].hint)
    hint = LIST_ALL
    others = clouds.not_set_up()
    if others:
        hint += f" Not searched (not set up on this computer): {', '.join(others)}."
    for origin in filter(None, map(engine.ledger.find, engine.ledger.remembered())):
        if _means(id, TaskId.parse(origin.id)) and not clouds.exists(origin.cloud):
            hint += (
                f" {origin.id} was created in {origin.folder} on the cloud {origin.cloud}, "
                "which no settings name here."
            )
    return NotFound(f"Task {id} not found", hint=hint)


def list_tasks(*, on_event: OnEvent | None = None, ctx: Context | None = None) -> list[Handle]:
    """All tasks, of all clouds that can be asked."""
    ctx = ctx or context_for(on_event)
    return of_all(ctx, partial(_tasks, ctx))


def _tasks(ctx: Context, cloud: Cloud) -> list[Handle]:
    return [Handle(cloud, id, ctx) for id in cloud.tasks(ctx)]  # noqa: A001


def overview(
    *,
    cloud: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
    missed: list[SojournError] | None = None,
) -> list[tuple[Handle, Status]]:
    """All tasks with their states, of all clouds that can be asked; from as few calls as it takes.

    `Handle.status` tells more of one: which machine has which rank, and what keeps it waiting.
    `cloud`: only those there. `missed` gets an error for each cloud that could not be asked.
    """
    ctx = ctx or context_for(on_event)

    def found(cloud: Cloud) -> list[tuple[Handle, Status]]:
        ids = list(cloud.tasks(ctx))
        if not ids:
            return []  # and the engine is not even loaded
        seen = engine.observe.overview(ctx, cloud, ids)
        return [(Handle(cloud, id, ctx), status) for id, status in seen]  # noqa: A001

    if cloud:
        return found(clouds.load(cloud))
    return of_all(ctx, found, missed)


def described(ctx: Context) -> Iterator[tuple[Handle, Status, Task]]:
    """The same with what each of them is, as far as that can be told."""
    rows = overview(ctx=ctx)
    for start in range(0, len(rows), _AT_ONCE):
        some = rows[start : start + _AT_ONCE]
        tasks = together([partial(_task_of, ctx, handle) for handle, _ in some])
        yield from ((*row, task) for row, task in zip(some, tasks, strict=True) if task)


def gc(*, on_event: OnEvent | None = None, ctx: Context | None = None) -> list[tuple[Handle, str]]:
    """Tasks of this computer that finished or were never completed, and why they can be deleted."""
    return [
        (handle, item.reason) for handle, item in garbage(on_event=on_event, ctx=ctx) if item.here
    ]


def garbage(
    *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> list[tuple[Handle, Garbage]]:
    """The same with those that other computers created."""
    ctx = ctx or context_for(on_event)

    def found(cloud: Cloud) -> list[tuple[Handle, Garbage]]:
        return [(Handle(cloud, item.id, ctx), item) for item in engine.gc.garbage(ctx, cloud)]

    return of_all(ctx, found)


def _task_of(ctx: Context, handle: Handle) -> Task | None:
    """What a task of many is; None if it was deleted meanwhile or never completed.

    One that cannot be read must not hide the others either.
    """
    try:
        return handle.task()
    except Cancelled:
        raise
    except NotFound:
        return None
    except SojournError as error:
        ctx.warn(f"Could not tell what {handle.id} is: {error.message}")
        return None


def each_cloud(
    ask: Callable[[Cloud], list[_T]], missed: list[SojournError], *, first: str = ""
) -> Iterator[_T]:
    """One that cannot be asked must not hide what is in the others."""
    for cloud in clouds.set_up(first):
        try:
            yield from ask(cloud)
        except (AuthError, MissingDependency, Transient) as error:
            error.message = f"Could not reach {cloud.name}: {error.message}"
            missed.append(error)


def of_all(
    ctx: Context, ask: Callable[[Cloud], list[_T]], missed: list[SojournError] | None = None
) -> list[_T]:
    """The same of all clouds, with a warning for each that cannot be asked."""
    missed = [] if missed is None else missed
    found = list(each_cloud(ask, missed))
    _warn_of(ctx, missed)
    return found


def _warn_of(ctx: Context, missed: Sequence[SojournError]) -> None:
    for error in missed:
        ctx.warn(str(error))


def _all_begin_with(text: str) -> bool:
    """Whether it tells nothing of one task. It is never taken for the only one that there is."""
    return "tpi-".startswith(text) or not normalise(text.removeprefix("tpi-"))


def _means(text: str, id: TaskId) -> bool:
    parts = {text.removeprefix("tpi-"), normalise(text)} - {"", "tpi"}
    whole = str(id).removeprefix("tpi-")
    return any(whole.startswith(part) or id.short.startswith(part) for part in parts)
