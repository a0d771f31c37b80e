"""How all that is made for a task is marked, so that any laptop finds it again."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

from sojourn.clouds.vm.tags import user_tags
from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["ACCOUNT", "CONTAINER", "ID", "MOST", "check", "tags_of"]

ID = "sojourn:id"
ACCOUNT = "sojourn:account"
CONTAINER = "sojourn:container"
MOST = 42  # tags of the user's: Azure takes 50, and up to eight are ours
_OURS = "sojourn:"
_LONGEST_KEY = 128  # characters, as storage accounts have it; others take more
_LONGEST = 256  # characters of a value
_FORBIDDEN = re.compile(r"[<>%&\\?/\x00-\x1f\x7f]")
_RESERVED = ("microsoft", "azure", "windows", _OURS)


def tags_of(id: TaskId, task: Task) -> dict[str, str]:
    """The user's own tags, and ours."""
    ours = {ID: str(id), "sojourn:version": version("sojourn")}
    if task.name:
        ours["sojourn:name"] = task.name[:_LONGEST]
    if task.storage.container:
        ours[ACCOUNT] = task.storage.container_opts.get("account", "")
        ours[CONTAINER] = task.storage.container
    return {**user_tags(task), **ours}


def check(task: Task) -> None:
    """Refuse what any of the services would: of all of them, storage is the strictest."""
    found = [Problem("tags", text) for text in _problems(task)]
    if found:
        raise InvalidInput("tags", found[0].message, *found[1:])


def _problems(task: Task) -> Iterator[str]:
    tags = user_tags(task)
    if len(tags) > MOST:
        yield f"must be at most {MOST} on Azure, got {len(tags)}"
    seen: set[str] = set()
    for key, value in tags.items():
        yield from _problems_of(key, value)
        if key.lower() in seen:
            yield f"duplicate tag {key!r}: Azure ignores case"
        seen.add(key.lower())


def _problems_of(key: str, value: str) -> Iterator[str]:
    if not 1 <= len(key) <= _LONGEST_KEY:
        yield f"{key!r} must have 1 to {_LONGEST_KEY} characters, got {len(key)}"
    if len(value) > _LONGEST:
        yield f"the value of {key!r} must have at most {_LONGEST} characters, got {len(value)}"
    if _FORBIDDEN.search(key):
        yield rf"{key!r} must not contain control characters or any of < > % & \ ? /"
    if key.lower().startswith(_RESERVED):
        yield f"{key!r} is reserved for Azure and Sojourn"
