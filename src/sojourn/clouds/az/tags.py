"""How all that is made for a task is marked, so that any laptop finds it again."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

from sojourn.clouds.vm.tags import LONGEST, check_lengths, check_tags, user_tags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = [
    "ACCOUNT",
    "BASE",
    "CONTAINER",
    "CREATED",
    "ID",
    "IMAGE",
    "MOST",
    "PLAN",
    "READY",
    "USER",
    "check",
    "image_tags",
    "parse_plan",
    "tags_of",
]

ID = "sojourn:id"
ACCOUNT = "sojourn:account"
CONTAINER = "sojourn:container"
# Of an image that was made: its name, when, from what, whom it lets in by SSH, what somebody sells
# with it, and whether it is finished
IMAGE = "sojourn:image"
CREATED = "sojourn:created"
BASE = "sojourn:base"
USER = "sojourn:user"
PLAN = "sojourn:plan"
READY = "sojourn:ready"
MOST = 42  # tags of the user's: Azure takes 50, and up to eight are ours
_OURS = "sojourn:"
_TASK_NAME = "sojourn:name"
_FORBIDDEN = re.compile(r"[<>%&\\?/\x00-\x1f\x7f]")
_RESERVED = ("microsoft", "azure", "windows", _OURS)


_OF_PLANS = ("publisher", "product", "name")


def tags_of(id: TaskId, task: Task) -> dict[str, str]:
    """The user's own tags, and ours."""
    ours = {ID: str(id), "sojourn:version": version("sojourn")}
    if task.name:
        ours[_TASK_NAME] = task.name[:LONGEST]
    if task.storage.container:
        ours[ACCOUNT] = task.storage.container_opts.get("account", "")
        ours[CONTAINER] = task.storage.container
    return {**user_tags(task), **ours}


def image_tags(
    id: TaskId, task: Task, name: str, user: str, plan: dict[str, str], created: str
) -> dict[str, str]:
    """Those of an image that is made from a machine of this task, until it is finished."""
    not_its_own = (_TASK_NAME, ACCOUNT, CONTAINER)
    own = {key: value for key, value in tags_of(id, task).items() if key not in not_its_own}
    own |= {IMAGE: name, CREATED: created, BASE: task.image[:LONGEST], USER: user}
    if plan:
        own[PLAN] = ":".join(plan[key] for key in _OF_PLANS)
    return own


def parse_plan(text: str) -> tuple[tuple[str, str], ...]:
    """What has to be said of an image that somebody sells; of others, nothing."""
    parts = text.split(":")
    return tuple(sorted(zip(_OF_PLANS, parts, strict=True))) if len(parts) == 3 else ()


def check(task: Task) -> None:
    """Refuse what any of the services would: of all of them, storage is the strictest."""
    check_tags(task, "Azure", MOST, _problems, ignores_case=True)


def _problems(key: str, value: str) -> Iterator[str]:
    yield from check_lengths(key, value)
    if _FORBIDDEN.search(key):
        yield rf"{key!r} must not contain control characters or any of < > % & \ ? /"
    if key.lower().startswith(_RESERVED):
        yield f"{key!r} is reserved for Azure and Sojourn"
