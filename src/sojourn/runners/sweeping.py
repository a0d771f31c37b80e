"""What former runners left: tasks that ended, and registrations without a machine.

Each launch removes them, so that launches from CI, which never come back, leave a bounded number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import engine
from sojourn.api.finding import each_cloud, warn_of
from sojourn.core.errors import IntegrityError, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Cloud
    from sojourn.forges.forge import Forge, Registered

__all__ = ["orphans", "remove_ended", "sweep", "task_of"]

_NAMED = 3  # runners that a note names


def sweep(
    ctx: Context, cloud: Cloud, repo: str, forge: Forge, registered: Sequence[Registered]
) -> None:
    """Remove what nobody needs any more; what cannot be removed must not be in the way."""
    try:
        removed = remove_ended(ctx, cloud, repo)
        for each in orphans(ctx, repo, registered, removed):
            if forge.unregister(ctx, each.id):
                ctx.note(f"Unregistered {each.name}, which has no machine any more")
    except SojournError as error:
        ctx.warn(f"Could not remove what earlier runners left: {error.message}")


def remove_ended(ctx: Context, cloud: Cloud, repo: str) -> list[TaskId]:
    """The tasks of runners of this repository that have ended, in one cloud."""
    removed = []
    ids = list(cloud.tasks(ctx))
    for each, status in engine.observe.overview(ctx, cloud, ids) if ids else []:
        if status.state.ended and _serves(ctx, cloud, each, repo):
            engine.removal.delete(ctx, cloud, each, fetch=False)
            ctx.note(f"Removed {each}, a runner that has ended")
            removed.append(each)
    return removed


def _serves(ctx: Context, cloud: Cloud, id: TaskId, repo: str) -> bool:
    try:
        runner = cloud.data(id).load(ctx).runner
    except (IntegrityError, NotFound):  # `list` tells of one that is damaged
        return False
    return runner is not None and runner.repo == repo


def orphans(
    ctx: Context, repo: str, registered: Sequence[Registered], removed: Sequence[TaskId] = ()
) -> list[Registered]:
    """Runners of ours that are offline, and whose machines are known to be gone.

    `removed`: tasks that were deleted just now. Others are known to be gone if this computer
    created and deleted them. A task that is not found otherwise may be in a cloud or an account
    that cannot be asked here: a spot machine that is being replaced there is offline, too, and
    needs its registration.
    """
    offline = [each for each in registered if not each.online and task_of(each)]
    if not offline:
        return []
    missed: list[SojournError] = []
    known = set(each_cloud(lambda cloud: list(cloud.tasks(ctx)), missed))
    warn_of(ctx, missed)
    lost = [each for each in offline if task_of(each) not in known]
    gone = [each for each in lost if _is_gone(task_of(each), removed)]
    _tell_of_unknown(ctx, repo, [each for each in lost if each not in gone])
    return gone


def _is_gone(id: TaskId | None, removed: Sequence[TaskId]) -> bool:
    return id is not None and (id in removed or engine.ledger.was_deleted(id))


def _tell_of_unknown(ctx: Context, repo: str, found: Sequence[Registered]) -> None:
    if not found:
        return
    names = [each.name for each in found]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    ctx.note(
        f"Keeping {', '.join(names[:_NAMED])}{more} registered, offline: the machine may be in a "
        "cloud or account that this computer cannot ask. If it is gone, remove the runner in the "
        f"settings of {repo}."
    )


def task_of(registered: Registered) -> TaskId | None:
    """The task of a runner that this program launched; None if it was another one."""
    for label in registered.labels:
        try:
            return TaskId.parse(label)
        except InvalidInput:
            continue
    return None
