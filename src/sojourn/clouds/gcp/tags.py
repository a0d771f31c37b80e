"""How all that is made for a task is labelled, so that any laptop finds it again."""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import TYPE_CHECKING

from sojourn.clouds.vm.tags import check_tags, user_tags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["ID", "IMAGE", "ZONE", "check", "labels_of"]

ID = "sojourn-id"
ZONE = "sojourn-zone"
IMAGE = "sojourn-image"  # the name of an image that was made
MOST = 58  # labels of the user's: Google takes 64, and up to six are ours
_OURS = "sojourn-"
_LONGEST = 63  # characters, of keys and of values
_KEY = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_VALUE = re.compile(r"[a-z0-9_-]{0,63}")
_OTHER = re.compile(r"[^a-z0-9_-]")


def labels_of(id: TaskId, task: Task) -> dict[str, str]:
    """The user's own tags, and ours."""
    ours = {ID: str(id), "sojourn-version": _clean(version("sojourn"))}
    if task.name:
        ours["sojourn-name"] = _clean(task.name)
    return {**user_tags(task), **ours}


def check(task: Task) -> None:
    """Refuse what cannot be a label."""
    check_tags(task, "Google Cloud", MOST, _problems, ignores_case=False)


def _problems(key: str, value: str) -> Iterator[str]:
    if not _KEY.fullmatch(key):
        yield (
            f"{key!r} must have 1 to {_LONGEST} lowercase letters, digits, _ and -, "
            "and start with a letter"
        )
    if not _VALUE.fullmatch(value):
        yield (
            f"the value of {key!r} must have at most {_LONGEST} lowercase letters, digits, "
            f"_ and -, got {value!r}"
        )
    if key.startswith(_OURS):
        yield f"{key!r} is reserved for Sojourn"


def _clean(text: str) -> str:
    """The text with a dash for what Google does not take."""
    return _OTHER.sub("-", text.lower())[:_LONGEST]
