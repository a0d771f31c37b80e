"""Commands that do one thing to several tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.cli.session import opened
from sojourn.core.events import StatusChanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.api import Handle

__all__ = ["to_each"]


def to_each(ids: tuple[str, ...], as_json: bool, verb: Callable[[Handle], None]) -> None:
    """Do it to each task, and show the state it is in then."""
    from sojourn import api

    with opened(as_json=as_json) as session:
        for id in ids:  # noqa: A001
            handle = api.get(id, ctx=session.ctx)
            verb(handle)
            now = handle.status()
            session.renderer(StatusChanged(handle.id, str(now.state), now.reason, now.exit_code))
