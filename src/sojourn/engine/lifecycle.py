"""Stop, start, pull and delete: the order of things, the same on every cloud.

Every verb can be repeated and interrupted at any point: it looks at what is there, and goes on
from it. A cloud's resources are made in order and removed in the reverse order, the scaler being
the last to come and the first to go.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from sojourn.core.errors import Cancelled, Conflict, InvalidInput, NotFound, SojournError, Transient
from sojourn.core.parallel import together
from sojourn.core.status import INCOMPLETE, State
from sojourn.core.task import Storage
from sojourn.engine import ledger
from sojourn.engine.check import check_storage, local_workdir

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud, Data, Fleet, Resource, Scaler
    from sojourn.core.task import Task

__all__ = [
    "amend",
    "any_there",
    "conclude",
    "delete",
    "ensure_started",
    "exists",
    "interrupt",
    "left_nothing",
    "lost_some",
    "pull",
    "stages",
    "start",
    "stop",
]

_FLUSH_WITHIN = 60 * 60.0  # seconds for machines to store the last of their work
_FORCE_WITHIN = 10.0  # and if they are to be removed by force
_TELL_AFTER = 5.0  # seconds until it is told who is waited for


def stages(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Those that do not need each other, together, in the order of creation."""
    return [list(stage) for _, stage in groupby(resources, key=lambda resource: resource.stage)]


def exists(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether anything of a task is there."""
    return any_there(ctx, cloud.resources(id, None))


def any_there(ctx: Context, resources: Sequence[Resource]) -> bool:
    """Whether anything of these is there."""
    store, *others = resources  # what is there mostly has a store
    return store.read(ctx) or any(together([partial(other.read, ctx) for other in others]))


def stop(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Take all machines away, with notice, and wait until they have stored their work."""
    _require(ctx, cloud, id)
    with ctx.step("Stopping machines"):
        _scale_to_none(ctx, cloud, id, _FLUSH_WITHIN)


def _scale_to_none(ctx: Context, cloud: Cloud, id: TaskId, seconds: float) -> None:
    """Want no machines, and wait until all are gone; Transient if that takes longer."""
    scaler = cloud.scaler(id)
    if not scaler.read(ctx):
        return
    scaler.scale(ctx, 0)
    began = time.monotonic()
    waiting = ctx.within(seconds)
    told = seconds <= _TELL_AFTER
    while (fleet := scaler.fleet(ctx)) and fleet.machines:
        if not told and time.monotonic() > began + _TELL_AFTER:
            ctx.note(_waiting_for(id, fleet, seconds))
            told = True
        waiting.sleep(cloud.features.poll)


def _waiting_for(id: TaskId, fleet: Fleet, seconds: float) -> str:
    names = [machine.id for machine in fleet.machines]
    who = f"machine {names[0]}" if len(names) == 1 else f"{len(names)} machines"
    whose = "its" if len(names) == 1 else "their"
    return (
        f"Waiting for {who} to store {whose} work (up to {seconds / 60:.0f} min). "
        f"Run `sojourn delete --force {id}` to end {'it' if len(names) == 1 else 'them'} now "
        "and remove the task."
    )


def start(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Go on with the ranks that have not ended; those that have stay as they are."""
    _require(ctx, cloud, id)
    data = cloud.data(id)
    if not cloud.scaler(id).read(ctx):
        raise NotFound(f"{id} cannot be started: {INCOMPLETE.reason}", hint=f"sojourn delete {id}")
    task = data.load(ctx)
    records = data.records(ctx, task.parallelism)
    if all(record.ended for record in records):
        ctx.note("It has ended, and what has ended does not run again: create a new task")
        return
    with ctx.step("Starting machines"):
        ensure_started(ctx, cloud.scaler(id), data, task)


def ensure_started(ctx: Context, scaler: Scaler, data: Data, task: Task) -> None:
    """Want a machine for every rank that has not ended.

    Looked at in this order: a rank reports its end before it is wanted no more, so that fewer
    machines than ranks are wanted only if some did not come to anything.
    """
    fleet = scaler.fleet(ctx)
    left = sum(not record.ended for record in data.records(ctx, task.parallelism))
    if not fleet or fleet.wanted < left:
        scaler.scale(ctx, left)
    elif fleet.stuck:
        scaler.scale(ctx, fleet.wanted)


def pull(
    ctx: Context, cloud: Cloud, id: TaskId, into: Path | None = None, output: str = ""
) -> list[str]:
    """Bring the output home, into the workdir or another folder; returns what was written.

    `output`: another part of the workdir than the task says.
    """
    _require(ctx, cloud, id)
    data = cloud.data(id)
    task = data.load(ctx)
    output = Storage(output=output).output or task.storage.output
    if not output:
        return []
    target = into.absolute() if into else local_workdir(task.storage)
    if not into and not target.is_dir():
        raise InvalidInput(
            "workdir",
            f"the results belong in {target}, which is not on this computer; "
            "say where they should go (--into)",
        )
    if not into:
        check_storage(task.storage)
    with ctx.step("Downloading results"), _writing_home(id, target):
        written = data.pull(ctx, output, target, task.filters())
    if not written and not data.holds(ctx, output):
        ctx.warn(f"There is nothing in {output!r}, which should come home")
    return written


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
            f"The results cannot be written to {path}: {error.strerror or error}",
            hint=f"Allow it, or bring them elsewhere with: sojourn pull {id} --into FOLDER",
        ) from error


def amend(ctx: Context, cloud: Cloud, id: TaskId, output: str, exclude: tuple[str, ...]) -> None:
    """Change what comes home of a task that exists."""
    data = cloud.data(id)
    task = data.load(ctx)
    storage = replace(task.storage, output=output, exclude=exclude)
    with ctx.step("Storing the task"):
        data.amend(ctx, replace(task, storage=storage))


def left_nothing(ctx: Context, cloud: Cloud, id: TaskId, output: str = "") -> bool:
    """Whether a task has an output to bring home, and nothing is there."""
    data = cloud.data(id)
    output = output or data.load(ctx).storage.output
    return bool(output) and not data.holds(ctx, output)


def lost_some(ctx: Context, cloud: Cloud, id: TaskId) -> bool:
    """Whether some of a task's output could not be stored. Absent: no."""
    return any(report.lost for report in cloud.data(id).reports(ctx) if report.outcome.final)


def conclude(ctx: Context, cloud: Cloud, id: TaskId, state: State) -> None:
    """Bring home and remove what has ended; what somebody may still need stays, see `api.run`."""
    if lost_some(ctx, cloud, id):
        pull(ctx, cloud, id)
        ctx.warn(f"{id} is kept: some of its output could not be stored")
    elif state is State.SUCCEEDED and left_nothing(ctx, cloud, id):
        ctx.warn(f"{id} is kept: it left nothing in its output")
    elif state is not State.STOPPED:
        delete(ctx, cloud, id)


def delete(
    ctx: Context,
    cloud: Cloud,
    id: TaskId,
    *,
    into: Path | None = None,
    output: str = "",
    fetch: bool = True,
    force: bool = False,
) -> None:
    """Stop the machines, bring the results home, and only then remove everything.

    If the results cannot be brought home, nothing is removed; `force` removes all the same.
    """
    _require(ctx, cloud, id)
    try:
        _stop_for_good(ctx, cloud, id, force)
        if fetch:
            _fetch(ctx, cloud, id, into, output, force)
            _refuse_started(ctx, cloud, id)
        for stage in reversed(stages(cloud.resources(id, None))):
            together([partial(_remove_one, ctx, resource) for resource in stage])
        ledger.forget(id)
    except Cancelled as error:
        error.hint = f"Not all of it is removed; go on with: sojourn delete {id}"
        raise


def _remove_one(ctx: Context, resource: Resource) -> None:
    with ctx.step(f"Removing {resource.title}"):
        resource.delete(ctx)


def _refuse_started(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    """Bringing results home may take long, and meanwhile somebody may want more of them."""
    fleet = cloud.scaler(id).fleet(ctx)
    if fleet and fleet.wanted:
        raise Conflict(
            f"{id} was started again while its results came home; nothing was removed",
            hint=f"To remove it all the same: sojourn delete {id}",
        )


def _stop_for_good(ctx: Context, cloud: Cloud, id: TaskId, force: bool) -> None:
    """With `force`, machines that are not gone in time end when their scaler is removed."""
    try:
        with ctx.step("Stopping machines"):
            _scale_to_none(ctx, cloud, id, _FORCE_WITHIN if force else _FLUSH_WITHIN)
    except Transient:
        if not force:
            raise
        ctx.warn(f"Could not stop all machines within {_FORCE_WITHIN:.0f} seconds; ending them")


def _fetch(
    ctx: Context, cloud: Cloud, id: TaskId, into: Path | None, output: str, force: bool
) -> None:
    try:
        pull(ctx, cloud, id, into, output)
        _tell_of_lost(ctx, cloud.data(id))
    except NotFound:
        return  # it was never completely created: there are no results
    except (SojournError, OSError) as error:
        if force:
            ctx.warn(f"The results were not brought home: {error}")
            return
        if isinstance(error, SojournError):
            error.hint = (
                f"{error.hint}\nNothing was removed; "
                f"`sojourn delete --force {id}` removes it all the same."
            ).strip()
        raise


def _tell_of_lost(ctx: Context, data: Data) -> None:
    for record in data.records(ctx, data.load(ctx).parallelism):
        if record.attempt and record.report is None:
            ctx.warn(
                f"The machine of rank {record.rank} ended without a word: what came home is what "
                "it had stored until then"
            )


def interrupt(
    ctx: Context, cloud: Cloud, id: TaskId, rank: int | None, *, notice: bool
) -> list[str]:
    """Take machines away as a spot market does: that of one rank, or all; returns them."""
    _require(ctx, cloud, id)
    if not cloud.features.interrupt:
        raise InvalidInput("id", f"machines of the cloud {cloud.name} cannot be interrupted")
    data = cloud.data(id)
    task = data.load(ctx)
    if rank is not None and not 0 <= rank < task.parallelism:
        raise InvalidInput("rank", f"{rank} is not one of 0 to {task.parallelism - 1}")
    records = data.records(ctx, task.parallelism)
    fleet = cloud.scaler(id).fleet(ctx)
    alive = {machine.id for machine in fleet.machines} if fleet else set()
    victims = [
        record.machine
        for record in records
        if record.machine in alive and record.report is None and rank in (None, record.rank)
    ]
    if not victims:
        raise NotFound(
            "No machine is carrying out the script now", hint=f"See: sojourn status {id}"
        )
    for machine in victims:
        with ctx.step(f"Interrupting machine {machine}"):
            cloud.scaler(id).interrupt(ctx, machine, notice=notice)
    return victims


def _require(ctx: Context, cloud: Cloud, id: TaskId) -> None:
    if not exists(ctx, cloud, id):
        raise NotFound(f"There is no task {id}", hint="`sojourn list` shows all there are.")
