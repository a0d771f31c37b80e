"""Running a task once more on the machines that its last run kept up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.core.errors import Conflict, NotFound
from sojourn.engine import ledger
from sojourn.engine.creation import check, origin_of, push
from sojourn.engine.lifecycle import ensure_started
from sojourn.engine.removal import keep_results

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud, Data
    from sojourn.core.task import Task
    from sojourn.engine.creation import Launch

__all__ = ["run_again"]

# What another run may have otherwise: its machines stay as they are.
_OF_A_RUN = ("arguments", "environment", "files", "script", "storage", "timeout", "warm")


def run_again(ctx: Context, cloud: Cloud, launch: Launch) -> bool:
    """Have a task that has ended run once more, with what is new of it; False if there is none.

    Results of the last run are brought home first, and its log is saved. It can be repeated: from
    the moment on at which the store tells of another run, machines carry that one out.
    """
    data = cloud.data(launch.id)
    former = _former(ctx, data)
    if former is None or not cloud.scaler(launch.id).read(ctx):
        return False
    check(ctx, cloud, launch.task)
    _refuse_other_machines(launch, former)
    unfinished = data.is_beginning_again(ctx)
    records = data.records(ctx, former.parallelism)
    if not unfinished and not all(record.ended for record in records):
        raise Conflict(
            f"{launch.id} is still running",
            hint=f"Run `sojourn attach {launch.id}` to follow it, or "
            f"`sojourn delete {launch.id}` to end it.",
        )
    if not unfinished:  # else they are home already
        keep_results(ctx, cloud, launch.id, task=former)
    with ctx.phase(f"Starting another run of {launch.id.name}") as inside:
        with inside.step("Storing the task"):
            data.sign(inside, ledger.this_user())
            data.amend(inside, launch.task, launch.environment)
        ledger.remember(origin_of(launch, data))
        push(inside, data, launch)
        with inside.step("Starting machines"):
            data.begin_again(inside)
            ensure_started(inside, cloud.scaler(launch.id), data, launch.task)
    return True


def _former(ctx: Context, data: Data) -> Task | None:
    try:
        return data.load(ctx)
    except NotFound:
        return None


def _refuse_other_machines(launch: Launch, former: Task) -> None:
    new = replace(launch.task, **{name: getattr(former, name) for name in _OF_A_RUN})
    differing = [
        name
        for name in type(former).__dataclass_fields__
        if name not in _OF_A_RUN and getattr(new, name) != getattr(former, name)
    ]
    if differing:
        raise Conflict(
            f"{launch.id} keeps its machines for another run, but {', '.join(differing)} changed",
            hint=f"Run `sojourn delete {launch.id}` first.",
        )
