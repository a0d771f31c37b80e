"""Runs: tasks are created, followed to their ends, and deleted once their results are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import engine
from sojourn.api.creating import check, create
from sojourn.api.handle import Handle, Result
from sojourn.api.resultfile import write_result
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import NotFound, SojournError
from sojourn.core.status import State

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from typing_extensions import Unpack

    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.core.task import Task
    from sojourn.taskfiles.changes import Fields

    Follow = Callable[[Handle], Status]

__all__ = ["followed", "run", "run_all", "see_through"]


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
    ctx = ctx or context_for(on_event)
    handle = create(task, gitignore=gitignore, ctx=ctx, **changes)
    result = see_through(ctx, handle, keep=keep, keep_failed=keep_failed)
    if result.gone:
        raise engine.lifecycle.Deleted(handle.id)
    return result


def run_all(
    ctx: Context,
    tasks: Sequence[Task],
    *,
    gitignore: bool = False,
    command: str = "",
    detach: bool = False,
    keep: bool = False,
    keep_failed: bool = False,
    log_files: Sequence[Path | None] = (),
    follow: Follow | None = None,
) -> Iterator[Handle | Result]:
    """The same for tasks that belong together: each when it is created, then how each ended.

    None is created if one of them is refused. `detach`: no more than created. `log_files`: one for
    each, see `see_through`, which has `follow`, too.
    """
    for task in tasks[1:]:  # the first is checked when it is created
        check(task)
    others: list[Handle] = []
    try:
        for task in tasks:
            others.append(create(task, gitignore=gitignore, command=command, ctx=ctx))
            yield others[-1]
        for log_file in () if detach else log_files or [None] * len(tasks):
            handle = others.pop(0)
            yield see_through(
                ctx, handle, keep=keep, keep_failed=keep_failed, log_file=log_file, follow=follow
            )
    except SojournError as error:
        if others:
            ids = " ".join(other.id for other in others)
            error.hint = f"{error.hint}\nAlso started, and still running: {ids}".strip()
        raise


def see_through(
    ctx: Context,
    handle: Handle,
    *,
    keep: bool = False,
    keep_failed: bool = False,
    log_file: Path | None = None,
    follow: Follow | None = None,
) -> Result:
    """Follow a task to its end, download its results and delete it, unless it is to be kept.

    `log_file`: gets the log of rank 0 before that. `follow`: a front end's own way to follow it.
    """
    with handle.awaited(keep=keep or keep_failed):
        now = follow(handle) if follow else followed(ctx, handle)
    try:
        if log_file and now.state is not State.STOPPED:  # that one is kept, and goes on
            write_result(handle, log_file)
            ctx.note(f"Wrote the log of rank 0 to {log_file}")
        return handle.conclude(now, keep=keep, keep_failed=keep_failed)
    except NotFound:
        return Result(handle.id, now.state, now.exit_code, now.reason, gone=True)


def followed(ctx: Context, handle: Handle, **part: Any) -> Status:
    """Emit the log of a task until it has ended; its state then. `part`: of `Handle.logs`."""
    for line in handle.logs(follow=True, **part):
        ctx.check()  # there may be many at once
        ctx.emit(line)
    try:
        return handle.status()
    except NotFound as error:
        raise engine.lifecycle.Deleted(handle.id) from error
