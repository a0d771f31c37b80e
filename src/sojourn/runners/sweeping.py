"""What former runners left: tasks that ended, and registrations without a machine.

Each launch removes them, so that launches from CI, which never come back, leave a bounded number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import engine
from sojourn.api.finding import each_cloud, warn_of
from sojourn.core.errors import InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud
    from sojourn.forges.forge import Forge, Registered

__all__ = ["orphans", "remove_ended", "sweep", "task_of"]


def sweep(
    ctx: Context, cloud: Cloud, repo: str, forge: Forge, registered: Sequence[Registered]
) -> None:
    """Remove what nobody needs any more; what cannot be removed must not be in the way."""
    try:
        remove_ended(ctx, cloud, repo)
        for each in orphans(ctx, registered):
            if forge.unregister(ctx, each.id):
                ctx.note(f"Unregistered {each.name}, which has no machine any more")
    except SojournError as error:
        ctx.warn(f"Could not remove what earlier runners left: {error.message}")


def remove_ended(ctx: Context, cloud: Cloud, repo: str) -> None:
    """The tasks of runners of this repository that have ended, in one cloud."""
    ids = list(cloud.tasks(ctx))
    for each, status in engine.observe.overview(ctx, cloud, ids) if ids else []:
        if status.state.ended and _serves(ctx, cloud, each, repo):
            engine.removal.delete(ctx, cloud, each, fetch=False)
            ctx.note(f"Removed {each}, a runner that has ended")


def _serves(ctx: Context, cloud: Cloud, id: TaskId, repo: str) -> bool:
    try:
        runner = cloud.data(id).load(ctx).runner
    except NotFound:
        return False
    return runner is not None and runner.repo == repo


def orphans(ctx: Context, registered: Sequence[Registered]) -> list[Registered]:
    """Runners of ours that are offline, and whose tasks are in no cloud.

    If a cloud cannot be asked, there are none: the task may be there.
    """
    offline = [each for each in registered if not each.online and task_of(each)]
    if not offline:
        return []
    missed: list[SojournError] = []
    known = set(each_cloud(lambda cloud: list(cloud.tasks(ctx)), missed))
    if missed:
        warn_of(ctx, missed)
        return []
    return [each for each in offline if task_of(each) not in known]


def task_of(registered: Registered) -> TaskId | None:
    """The task of a runner that this program launched; None if it was another one."""
    for label in registered.labels:
        try:
            return TaskId.parse(label)
        except InvalidInput:
            continue
    return None
