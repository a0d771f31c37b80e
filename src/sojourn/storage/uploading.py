"""How far an upload is, for whoever looks at the task from another shell.

Whoever creates a task has a mark in the store, and rewrites it from time to time.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from sojourn.core.activity import Activity, Doing
from sojourn.core.context import Context
from sojourn.core.errors import IntegrityError, NotFound, SojournError
from sojourn.core.events import Event, Progress
from sojourn.storage import layout
from sojourn.storage.store import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.storage.store import Store

__all__ = ["read_upload", "telling"]

_TOLD_EVERY = 2.0  # seconds
_COUNTS_FOR = timedelta(seconds=30)  # by the clock here: at worst nothing, or too much, is shown


def telling(ctx: Context, store: Store, mark: str, signature: Mapping[str, Any]) -> Context:
    """The same context; what it emits of an upload is written down as well, beside who signed."""
    told = time.monotonic()  # a short upload is over before anybody could look

    def emit(event: Event) -> None:
        nonlocal told
        ctx.emit(event)
        if isinstance(event, Progress) and time.monotonic() > told + _TOLD_EVERY:
            told = time.monotonic()
            activity = Activity(Doing.UPLOADING, event.done, event.total)
            with suppress(SojournError):  # it is for show
                store.put(mark, json.dumps({**signature, **activity.to_dict()}).encode())

    return Context(emit, deadline=ctx.deadline, cancelled=ctx.cancelled)


def read_upload(store: Store) -> Activity | None:
    """What somebody uploads just now."""
    marks = store.list(layout.CREATORS)
    if not marks:
        return None
    last = max(marks, key=lambda mark: mark.modified)
    if not last.size or datetime.now(timezone.utc) - last.modified > _COUNTS_FOR:
        return None
    with suppress(IntegrityError, NotFound):
        return read_json(store, last.path, Activity.from_dict)
    return None
