"""What former runners left: tasks that ended, and registrations without a machine.

Each launch removes them, so that launches from CI, which never come back, leave a bounded number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api
from sojourn.api.finding import was_deleted
from sojourn.core.errors import IntegrityError, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.forges.forge import Forge, Registered

__all__ = ["orphans", "remove_ended", "sweep", "task_of"]

_NAMED = 3  # runners that a note names


def sweep(
    ctx: Context, cloud: str, repo: str, forge: Forge, registered: Sequence[Registered]
) -> None:
    """Remove what nobody needs any more; what cannot be removed must not be in the way."""
    try:
        removed = remove_ended(ctx, cloud, repo)
        for each in orphans(ctx, repo, registered, removed):
            if forge.unregister(ctx, each.id):
                ctx.note(f"Unregistered {each.name}, which has no machine any more")
    except SojournError as error:
        ctx.warn(f"Could not remove what earlier runners left: {error.message}")


def remove_ended(ctx: Context, cloud: str, repo: str) -> list[str]:
    """The tasks of runners of this repository that have ended, in one cloud."""
    removed = []
    for handle, status in api.overview(cloud=cloud, ctx=ctx):
        if status.state.ended and _serves(handle, repo):
            handle.delete(fetch=False)
            ctx.note(f"Removed {handle.id}, a runner that has ended")
            removed.append(handle.id)
    return removed


def _serves(handle: api.Handle, repo: str) -> bool:
    try:
        runner = handle.task().runner
    except (IntegrityError, NotFound):  # `list` tells of one that is damaged
        return False
    return runner is not None and runner.repo == repo


def orphans(
    ctx: Context, repo: str, registered: Sequence[Registered], removed: Sequence[str] = ()
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
    known = {handle.id for handle in api.list_tasks(ctx=ctx)}
    lost = [each for each in offline if task_of(each) not in known]
    gone = [each for each in lost if task_of(each) in removed or was_deleted(task_of(each))]
    _tell_of_unknown(ctx, repo, [each for each in lost if each not in gone])
    return gone


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


def task_of(registered: Registered) -> str:
    """The task of a runner that this program launched; empty if it was another one."""
    for label in registered.labels:
        try:
            return str(TaskId.parse(label))
        except InvalidInput:
            continue
    return ""
