"""Where events of a verb go."""

from __future__ import annotations

from collections.abc import Callable

from sojourn.core.context import Context
from sojourn.core.events import Event

__all__ = ["OnEvent", "context_for"]

OnEvent = Callable[[Event], None]


def context_for(on_event: OnEvent | None) -> Context:
    """A context whose events go to this function."""
    return Context(on_event) if on_event else Context()
