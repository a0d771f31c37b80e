"""Which task a command is about."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import LIST_ALL, Conflict, NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session

__all__ = ["check_machine", "chosen", "last_one"]


def chosen(session: Session, id: str | None) -> Handle:
    """The task of this id; without one, the last task of the current folder, which is told.

    The error for a task that was deleted says how it ended, as far as this computer knows.
    """
    from sojourn import api
    from sojourn.cli.gone import gone_error

    if id is not None:
        try:
            return api.get(id, ctx=session.ctx)
        except NotFound as error:
            raise gone_error(id) or error from None
    handle = api.latest(ctx=session.ctx)
    if not handle.exists():
        raise NotFound(
            f"Task {handle.id}, the last one created in this folder, no longer exists",
            hint=LIST_ALL,
        )
    session.ctx.note(f"Using {handle.short}, the last task created in this folder")
    return handle


def last_one(id: str | None) -> str | None:
    """The same id; without one, that of the folder's last task if it was deleted meanwhile."""
    from sojourn import api

    return api.latest_deleted() if id is None else id


def check_machine(handle: Handle, verb: str) -> None:
    """Refuse a task that is no machine, and name the command for tasks."""
    stays = True
    with suppress(SojournError):  # nothing can be told of it: the verb itself says why
        stays = handle.task().stay
    if not stays:
        raise Conflict(
            f"{handle.id} is a task, not a machine",
            hint=f"Run `sojourn {verb} {handle.id}`.",
        )
