"""How all that is made for a task is marked, so that any laptop finds it again."""

from __future__ import annotations

import unicodedata
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sojourn.clouds.vm.tags import LONGEST, check_lengths, check_tags, user_tags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = [
    "BASE",
    "CONTAINER",
    "ID",
    "IMAGE",
    "MOST",
    "ROLE_PATH",
    "USER",
    "check",
    "image_tags",
    "tag_of",
    "tags_of",
    "to_list",
]

ID = "sojourn:id"
CONTAINER = "sojourn:container"
# Of an image that was made: its name, what it was made from, and whom it lets in by SSH
IMAGE = "sojourn:image"
BASE = "sojourn:base"
USER = "sojourn:user"
ROLE_PATH = "/sojourn/"  # the roles of tasks are told from all others by it
MOST = 43  # tags of the user's: AWS takes 50, and up to seven are ours
_OURS = "sojourn:"
_TASK_NAME = "sojourn:name"
_SIGNS = "_.:/=+-@"  # that a tag may have, beside letters, digits and spaces


def tags_of(id: TaskId, task: Task) -> dict[str, str]:
    """The user's own tags, and ours."""
    ours = {ID: str(id), "sojourn:version": version("sojourn")}
    if not any(key.lower() == "name" for key in user_tags(task)):
        ours["Name"] = str(id)
    if task.name:
        ours[_TASK_NAME] = _clean(task.name)[:LONGEST]
    if task.storage.container:
        ours[CONTAINER] = task.storage.container
    return {**user_tags(task), **ours}


def image_tags(id: TaskId, task: Task, name: str, user: str) -> dict[str, str]:
    """Those of an image that is made from a machine of this task."""
    ours = {"Name": name, IMAGE: name, BASE: _clean(task.image)[:LONGEST], USER: user}
    theirs = {key: value for key, value in tags_of(id, task).items() if key.lower() != "name"}
    return {key: value for key, value in theirs.items() if key != _TASK_NAME} | ours


def tag_of(found: Any, key: str) -> str:
    """A tag of what EC2 tells of; empty if it has none."""
    return next((str(t["Value"]) for t in found.get("Tags", ()) if t["Key"] == key), "")


def check(task: Task) -> None:
    """Refuse what any of the services would: of all of them, IAM is the strictest."""
    check_tags(task, "AWS", MOST, _problems, ignores_case=True)


def _problems(key: str, value: str) -> Iterator[str]:
    yield from check_lengths(key, value)
    for text in (key, value):
        if text != _clean(text):
            yield f"{text!r} must contain only letters, digits, spaces and {_SIGNS}"
    if key.lower().startswith(("aws:", _OURS)):
        yield f"{key!r} is reserved for AWS and Sojourn"


def _clean(text: str) -> str:
    """The text with a dash for what AWS does not take."""
    return "".join(char if _possible(char) else "-" for char in text)


def _possible(char: str) -> bool:
    return char in _SIGNS or unicodedata.category(char)[0] in "LNZ"


def to_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """As most services want them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]
