"""Which task a command is about."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.core.errors import Conflict, NotFound, SojournError

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.cli.session import Session

__all__ = ["check_machine", "chosen"]


def chosen(session: Session, id: str | None) -> Handle:
    """The task of this id; without one, the last task of the current folder, which is told."""
    from sojourn import api

    if id is not None:
        return api.get(id, ctx=session.ctx)
    handle = api.latest(ctx=session.ctx)
    if not handle.exists():
        raise NotFound(
            f"Task {handle.id}, the last one created in this folder, no longer exists",
            hint="Run `sojourn list` to see all tasks.",
        )
    session.ctx.note(f"Using {handle.id}, the last task created in this folder")
    return handle


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
