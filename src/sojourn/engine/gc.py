"""Garbage: what finished tasks and broken-off creations left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.errors import SojournError
from sojourn.core.status import State
from sojourn.engine import ledger
from sojourn.engine.home import created_here
from sojourn.engine.observe import is_complete, status
from sojourn.engine.results import foreseen, left_nothing, lost_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.interfaces import Cloud

__all__ = ["Garbage", "garbage"]


_STILL_CREATING = 600.0  # seconds without a write after which nobody is creating it any more


@dataclass(frozen=True)
class Garbage:
    """A task that could be deleted, and why.

    `here`: this computer created it. Otherwise `creators` are those who did, as they said.
    """

    id: TaskId
    reason: str
    here: bool
    creators: tuple[str, ...] = ()


def garbage(ctx: Context, cloud: Cloud) -> Iterator[Garbage]:
    """Tasks that will do nothing any more; one that was stopped on purpose is not garbage."""
    ids = list(cloud.tasks(ctx))
    known = cloud.states(ctx, ids)
    for id in ids:  # noqa: A001
        if id in known and known[id].ranks and not known[id].state.ended:
            continue  # complete, and not at its end: a glance is enough
        try:
            why = _why(ctx, cloud, id)
        except SojournError:
            continue  # deleted meanwhile, or damaged: `list` tells
        if why:
            yield _found(ctx, cloud, id, why)


def _found(ctx: Context, cloud: Cloud, id: TaskId, why: str) -> Garbage:
    data = cloud.data(id)
    # A creation that broke off early left no mark. It has no results that could be lost, either.
    if created_here(ctx, data, id) or (ledger.find(id) and not is_complete(ctx, cloud, id)):
        return Garbage(id, why, here=True)
    names = {name for name in data.creators(ctx).values() if name}
    return Garbage(id, why, here=False, creators=tuple(sorted(names)))


def _why(ctx: Context, cloud: Cloud, id: TaskId) -> str:
    """Why a task could be deleted; empty: it should stay."""
    if not is_complete(ctx, cloud, id):
        abandoned = cloud.data(id).idle(ctx) > _STILL_CREATING
        return "creation did not finish" if abandoned else ""
    now = status(ctx, cloud, id)
    if not now.state.ended or any(rank.state is State.STOPPED for rank in now.ranks):
        return ""
    # `run` keeps them for the same reasons: results may be elsewhere, or still on a machine.
    if now.state is State.SUCCEEDED and left_nothing(ctx, cloud, id):
        return ""
    left = foreseen(ctx, cloud, id)
    if left.why or lost_some(ctx, cloud, id):
        return ""
    beside = f", with {left.files} outside its output, which `pull --output .` downloads"
    return f"ended: {now.state}{beside if left.files else ''}"
