"""Runners that exist, and those that a forge knows though their machines are gone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.api import get as get_task
from sojourn.api.finding import described
from sojourn.api.telling import OnEvent, context_for
from sojourn.core.errors import AuthError, Conflict, InvalidInput, SojournError
from sojourn.runners.launched import Launched
from sojourn.runners.sweeping import orphans
from sojourn.runners.target import find_target
from sojourn.runners.tokens import GENERAL

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.runner import Runner
    from sojourn.core.status import Status
    from sojourn.forges.forge import Forge, Registered

__all__ = ["Orphan", "garbage", "get", "list_runners"]


@dataclass(frozen=True)
class Orphan:
    """A runner that is registered, and has no machine any more."""

    repo: str
    registered: Registered
    forge: Forge

    def unregister(self, ctx: Context) -> None:
        """Have its forge forget it."""
        if not self.forge.unregister(ctx, self.registered.id):
            raise Conflict(f"{self.registered.name} is running a job")


def get(id: str, *, on_event: OnEvent | None = None, ctx: Context | None = None) -> Launched:
    """The runner of this id, which may be shortened while it is unique."""
    return Launched.of(get_task(id, on_event=on_event, ctx=ctx))


def list_runners(
    *, on_event: OnEvent | None = None, ctx: Context | None = None
) -> list[tuple[Launched, Runner, Status]]:
    """All runners with their states, of all clouds that can be asked."""
    found = described(ctx or context_for(on_event))
    return [
        (Launched.of(handle), task.runner, status) for handle, status, task in found if task.runner
    ]


def garbage(
    *,
    driver: str = "",
    repo: str = "",
    token: str = "",
    on_event: OnEvent | None = None,
    ctx: Context | None = None,
) -> list[Orphan]:
    """Runners of a repository, found as `launch` finds it, whose machines are gone.

    The forge of a repository that is not given but found is asked only if it is known that the
    token is for it.
    """
    ctx = ctx or context_for(on_event)
    try:
        target = find_target(driver, repo, token, os.environ, named=bool(repo))
    except (AuthError, InvalidInput) as error:
        if repo:
            raise
        if isinstance(error, AuthError) and any(map(os.environ.get, GENERAL)):
            ctx.note(f"Not looking for runners without a machine. {error.message}.")
        return []  # there is no repository here, or no token for it
    try:
        forge = target.settled(ctx).open()
        found = orphans(ctx, target.repo, forge.runners(ctx))
        return [Orphan(target.repo, each, forge) for each in found]
    except SojournError as error:
        ctx.warn(f"Could not look for runners of {target.repo}: {error.message}")
        return []
