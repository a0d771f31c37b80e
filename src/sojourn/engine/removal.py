"""Deleting a task: nothing goes before its results are home and its log is saved."""

from __future__ import annotations

import os
import shlex
from functools import partial
from typing import TYPE_CHECKING

from sojourn.core.clock import utc_now
from sojourn.core.durations import format_seconds
from sojourn.core.errors import Cancelled, Conflict, IntegrityError, NotFound, SojournError
from sojourn.core.parallel import together
from sojourn.core.status import State, task_status
from sojourn.engine import ledger
from sojourn.engine.home import find_home
from sojourn.engine.lifecycle import Deleted, exists, stages, stop_for_good, unless_deleted
from sojourn.engine.results import bring, lost_some, missed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.events import LogLine
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Data, Resource
    from sojourn.core.status import RankRecord
    from sojourn.core.task import Task
    from sojourn.engine.home import Home
    from sojourn.engine.results import Missed

__all__ = ["conclude", "delete", "discard", "keep_results"]

_LOG_AT_MOST = 16 << 20  # bytes of the log of each rank that are saved
_SAVE_WITHIN = 10.0  # seconds for its log, of a task that is removed by force


def conclude(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    state: State,
    *,
    task: Task | None = None,
    keep: bool = False,
    keep_failed: bool = False,
) -> str:
    """Bring home and remove what has ended; tells why it was kept instead, or nothing.

    A task that somebody stopped stays, to be resumed. So does one whose results may be elsewhere
    than in its output: nobody but the user can tell.
    """
    if state is State.STOPPED:
        ctx.note(f"Keeping {id}, which was stopped")  # its state says how to resume it
        return "it was stopped"
    asked = keep or (keep_failed and _is_failure(state))
    with unless_deleted(ctx, cloud, id):
        if why := _why_kept(ctx, cloud, id, state, task, asked):
            data = cloud.data(id)
            bring(ctx, data, id, find_home(ctx, data, id, task=task))
            return why
    delete(ctx, cloud, id, task=task)
    return ""


def _is_failure(state: State) -> bool:
    return state in (State.FAILED, State.TIMED_OUT)


def _why_kept(
    ctx: Context, cloud: Cloud, id: TaskId, state: State, task: Task | None, asked: bool
) -> str:
    """Why a task is not deleted though it has ended, after telling the user; empty: it is."""
    data = cloud.data(id)
    if lost_some(ctx, cloud, id):
        ctx.warn(
            f"Keeping {id}: some of its results could not be stored. "
            f"Run `sojourn status {id}` to see where they are, "
            f"or `sojourn delete --force {id}` to remove it."
        )
        return "some of its results could not be stored"
    if asked:
        ctx.note(f"Keeping {id}. Run `sojourn delete {id}` to remove it.")
        return "you asked to keep it"
    if task and task.warm:
        stay = format_seconds(task.warm)
        ctx.note(
            f"Keeping {id}: its machines stay for {stay}, for another run under this name. "
            f"Run `sojourn delete {id}` to remove it."
        )
        return f"its machines stay for {stay}"
    home = find_home(ctx, data, id, task=task)
    left = missed(ctx, data, id, home)
    if state is State.SUCCEEDED and home.output and not data.holds(ctx, home.output):
        ctx.warn(
            f"Keeping {id}: it succeeded, but its output folder is empty. "
            f"Run `sojourn pull {id} --output . --into FOLDER` to see what it wrote, "
            f"or `sojourn delete {id}` to remove it."
        )
        return "its output folder is empty"
    if left.why:
        ctx.warn(f"Keeping {id}: it {_left(left)}. {_ways_out(id, left)}.")
        return f"it left files but {_short(left, home)}"
    return ""


def _left(left: Missed) -> str:
    return f"left {left.files} but {left.why}"


def _short(left: Missed, home: Home) -> str:
    """Why, without what differs from task to task."""
    return left.why.replace(f" {home.output!r}", "") if home.output else left.why


def _ways_out(id: TaskId, left: Missed) -> str:
    what = "everything" if left.output == "." else "by name"
    return (
        f"Run `sojourn pull {id} --output {shlex.quote(left.output)}` to download {what}, "
        f"or `sojourn delete --no-pull {id}` to discard it"
    )


def delete(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    *,
    task: Task | None = None,
    into: Path | None = None,
    output: str | None = None,
    fetch: bool = True,
    force: bool = False,
) -> None:
    """Stop the machines, bring the results home, and only then remove everything.

    If the results cannot be brought home, nothing is removed; `force` removes all the same.
    """
    if not exists(ctx, cloud, id):
        ledger.forget(id)
        return
    try:
        with unless_deleted(ctx, cloud, id):
            home = _found_home(ctx, cloud, id, task, into, output, force) if fetch else None
            stop_for_good(ctx, cloud, id, force)
            if home:
                home = _fetch(ctx, cloud, id, home, force)
                _refuse_started(ctx, cloud, id)
            _save_log(ctx, cloud, id, home, force)
            _remove_all(ctx, cloud, id)
    except Deleted:
        pass  # as it was to be
    except Cancelled as error:
        error.hint = f"Run `sojourn delete {id}` to remove what is left."
        raise
    ledger.note_removed(id)
    ledger.note_deleted(id)
    ledger.forget(id)


def _remove_all(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    with ctx.phase(f"Deleting {id.name}") as inside:
        for stage in reversed(stages(cloud.resources(id, None))):
            together([partial(_remove_one, inside, resource) for resource in stage])


def keep_results(ctx: Context, cloud: Cloud, id: TaskId, *, task: Task) -> None:
    """Bring home what a task that has ended left, and save its log; its store may be cleared."""
    home = find_home(ctx, cloud.data(id), id, task=task)
    _fetch(ctx, cloud, id, home, force=False, named=False)
    _save_log(ctx, cloud, id, home, force=False)


def discard(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Remove everything at once: nothing of it is worth keeping, not even the last of its work."""
    _remove_all(ctx, cloud, id)
    ledger.note_deleted(id)
    ledger.forget(id)
    ledger.forget_log(id)  # of a former task of this name


def _remove_one(ctx: Context, resource: Resource) -> None:
    with ctx.step(f"Removing {resource.title}"):
        resource.delete(ctx)


def _refuse_started(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Bringing results home may take long, and meanwhile somebody may want more of them."""
    fleet = cloud.scaler(id).fleet(ctx)
    if fleet and fleet.wanted:
        raise Conflict(
            f"{id} was started again while its results were downloading; nothing was removed",
            hint=f"Run `sojourn delete {id}` to remove it anyway.",
        )


def _found_home(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    task: Task | None,
    into: Path | None,
    output: str | None,
    force: bool,
) -> Home | None:
    """Where its results belong; None if there are none, or `force` does without them."""
    try:
        return find_home(ctx, cloud.data(id), id, task=task, into=into, output=output)
    except NotFound:
        return None  # it was never completely created
    except (SojournError, OSError) as error:
        _without_results(ctx, cloud, id, error, force)
        return None


def _fetch(
    ctx: Context, cloud: Cloud, id: TaskId, home: Home, force: bool, *, named: bool = True
) -> Home | None:
    """Where the results are now; None if `force` does without them.

    `named`: somebody wants this very task to be gone.
    """
    data = cloud.data(id)
    try:
        bring(ctx, data, id, home)
        _look_at_reports(ctx, cloud, id, home)
        _refuse_to_lose(ctx, data, id, home, named)
    except (SojournError, OSError) as error:
        _without_results(ctx, cloud, id, error, force)
        return None
    return home


def _look_at_reports(ctx: Context, cloud: Cloud, id: TaskId, home: Home) -> None:
    """Tell what was lost with its machine, and refuse if machines could not store some of it.

    A script can damage what its machine reports, and must not keep its owner from deleting it.
    """
    data = cloud.data(id)
    ranks = data.load(ctx).parallelism
    try:
        _tell_of_lost(ctx, data, ranks)
        lost = bool(home.output) and lost_some(ctx, cloud, id)
    except IntegrityError as error:
        ctx.warn(f"{error.message}. Cannot tell whether all results of {id.name} were stored.")
        return
    if lost:
        raise Conflict(
            f"Some results of {id} could not be stored and were not downloaded",
            hint=f"Run `sojourn status {id}` to see where they are.",
        )


def _refuse_to_lose(ctx: Context, data: Data, id: TaskId, home: Home, named: bool) -> None:
    left = missed(ctx, data, id, home)
    if left.why and not (named and left.outside):
        raise Conflict(f"{id} {_left(left)}", hint=f"{_ways_out(id, left)}.")
    if left.files:
        where = (
            f"outside the output folder {home.output!r}" if left.outside else f"in {left.output}"
        )
        what = "everything" if left.output == "." else "it by name"
        ctx.warn(
            f"Discarding {left.files} {where}. Next time, use `--output {shlex.quote(left.output)}`"
            f" to download {what}, or `--keep` to choose later."
        )


def _without_results(
    ctx: Context, cloud: Cloud, id: TaskId, error: SojournError | OSError, force: bool
) -> None:
    """Go on without them if that is wanted; else nothing is removed."""
    if isinstance(error, Cancelled) or not force:
        if isinstance(error, SojournError) and not isinstance(error, Cancelled):
            error.hint = (
                f"{error.hint}\nNothing was removed. "
                f"Run `sojourn delete --force {id}` to remove it anyway."
            ).strip()
        raise error
    try:
        with unless_deleted(ctx, cloud, id):  # another command has them, then
            raise error
    except Deleted:
        raise
    except (SojournError, OSError):
        ctx.warn(f"Could not download the results: {error}")


def _tell_of_lost(ctx: Context, data: Data, ranks: int) -> None:
    for record in data.records(ctx, ranks):
        if record.attempt and record.report is None:
            ctx.warn(
                f"The machine of rank {record.rank} was lost: results after its last snapshot "
                "are missing"
            )


def _log_of(ctx: Context, data: Data) -> Iterator[LogLine]:
    for line in data.log_tail(ctx, _LOG_AT_MOST):
        ctx.check()  # there may be many
        yield line
    data.load(ctx)  # else it is not all: the task is being deleted meanwhile


def _save_log(ctx: Context, cloud: Cloud, id: TaskId, home: Home | None, force: bool) -> None:
    """Whatever it printed may be wanted when all else is gone; but not at the price of staying.

    By force, there is little time for it, and nothing is told if it fails.
    """
    hurried = ctx.within(_SAVE_WITHIN) if force else ctx
    data = cloud.data(id)
    try:
        task = data.load(hurried)
        ending = _ending(hurried, data, task, home)
        ledger.save_log(id, _log_of(hurried, data), whose=task.parallelism > 1, ending=ending)
    except NotFound:
        return  # it was never completely created, or another command deletes it and saves its log
    except (SojournError, OSError) as error:
        if isinstance(error, Cancelled):
            raise
        ledger.forget_log(id)  # what is there is that of a former task of this name
        if not force:
            ctx.warn(f"Could not save the log of {id}: {error}")


def _ending(ctx: Context, data: Data, task: Task, home: Home | None) -> ledger.Ending | None:
    """How it is now that it goes; None if that cannot be told: the log is worth more.

    Whatever has no end yet gets none any more.
    """
    try:
        records = data.records(ctx, task.parallelism)
        there = bool(home and home.output and data.holds(ctx, home.output))
    except Cancelled:
        raise
    except (SojournError, OSError):
        return None
    now = task_status(records, wanted=0, alive=())
    reason = _why_unfinished(task, records) if now.state is State.STOPPED else now.reason
    results = os.path.normpath(home.folder / home.output) if home and there else ""
    return ledger.Ending(str(now.state), now.exit_code, reason, utc_now(), results)


def _why_unfinished(task: Task, records: Sequence[RankRecord]) -> str:
    """Why a task that goes is stopped: nobody can resume it any more."""
    if task.stay:
        return ""  # it was to be there until then
    activities = [record.activity for record in records if record.activity and not record.report]
    if any(activity.doing.after_script for activity in activities):
        return "its results were not stored"
    return "its script had not ended"
