"""What machines wrote down that could not even start the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm.paths import PROBLEMS
from sojourn.core.errors import NotFound
from sojourn.core.events import CloudEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.storage.store import Store

__all__ = ["read_problems"]

_LONGEST = 64 << 10  # bytes of what a machine says, and how many of them are read
_MOST = 20


def read_problems(open_store: Callable[[], Store]) -> list[CloudEvent]:
    """Oldest first. No store: none."""
    try:
        store = open_store()
        found = [item for item in store.list(PROBLEMS) if item.size <= _LONGEST]
        return [
            CloudEvent(
                item.modified.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "boot-failed",
                bytes(store.get(item.path)).decode("utf-8", "replace").strip(),
            )
            for item in found[:_MOST]
        ]
    except NotFound:
        return []
