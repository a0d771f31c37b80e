"""Who created a task, as the commands that did wrote it into the store.

A computer remembers the mark that it left, which tells its own tasks from others of the same name.
The name beside it is for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.core.errors import IntegrityError, NotFound
from sojourn.storage import layout
from sojourn.storage.store import read_json

if TYPE_CHECKING:
    from sojourn.storage.store import Store

__all__ = ["read_creators", "signature"]

_BY = "by"
_LONGEST = 100  # characters of a name


def signature(creator: str) -> dict[str, Any]:
    """What a mark holds of its creator."""
    return {_BY: creator[:_LONGEST]}


def read_creators(store: Store) -> dict[str, str]:
    """The names of the creators, by their marks; empty where a mark has none."""
    prefix = f"{layout.CREATORS}/"
    return {
        item.path.removeprefix(prefix): _name(store, item.path) if item.size else ""
        for item in store.list(layout.CREATORS)
    }


def _name(store: Store, path: str) -> str:
    try:
        return read_json(store, path, _parsed)
    except (IntegrityError, NotFound):
        return ""


def _parsed(data: Any) -> str:
    name = data.get(_BY, "")
    return "".join(filter(str.isprintable, name))[:_LONGEST] if isinstance(name, str) else ""
