"""What machines wrote down that could not even start the agent, and what it means if none did."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.clouds.vm.paths import PROBLEMS
from sojourn.core.errors import IntegrityError, NotFound
from sojourn.core.events import CloudEvent
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sojourn.core.context import Context
    from sojourn.core.interfaces import Fleet
    from sojourn.storage.store import ObjectInfo, Store

__all__ = ["read_problems", "unheard"]

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


def unheard(
    ctx: Context,
    look: Callable[[Context], Fleet | None],
    open_store: Callable[[], Store],
    page: str,
) -> str:
    """Why machines with an identity of the user's may have left without a word; empty: they did
    not. One that may not write to the store cannot write down that it may not."""
    data = StoreData(open_store)
    try:
        task = data.load(ctx)
    except NotFound:
        return ""
    fleet = look(ctx) if task.permission_set else None
    if fleet is None or fleet.wanted:
        return ""
    if any(record.attempt for record in data.records(ctx, task.parallelism)):
        return ""
    return (
        "no machine wrote to the store; unless you stopped the task, permission_set is not allowed "
        f"to: {page} has all that it needs"
    )
