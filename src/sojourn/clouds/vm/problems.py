"""What machines wrote down that could not even start the agent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.clouds.vm.paths import PROBLEMS
from sojourn.core.errors import IntegrityError, NotFound
from sojourn.core.events import CloudEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["read_problems"]

_LONGEST = 64 << 10  # bytes of what a machine says, and how many of them are read
_MOST = 20


def read_problems(open_store: Callable[[], Store]) -> list[CloudEvent]:
    """Oldest first. No store: none."""
    try:
        store = open_store()
        found = [item for item in store.list(PROBLEMS) if item.size <= _LONGEST]
        return [event for item in found[:_MOST] for event in _event(store, item)]
    except NotFound:
        return []


def _event(store: Store, item: ObjectInfo) -> Iterator[CloudEvent]:
    with suppress(IntegrityError):  # it grew meanwhile
        said = bytes(store.get(item.path, most=_LONGEST)).decode("utf-8", "replace").strip()
        yield CloudEvent(item.modified.strftime("%Y-%m-%dT%H:%M:%SZ"), "boot-failed", said)
