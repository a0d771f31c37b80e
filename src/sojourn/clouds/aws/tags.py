"""How all that is made for a task is marked, so that any laptop finds it again."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["CONTAINER", "ID", "ROLE_PATH", "tags_of", "to_list"]

ID = "sojourn:id"
CONTAINER = "sojourn:container"
ROLE_PATH = "/sojourn/"  # the roles of tasks are told from all others by it
_LONGEST = 256  # characters of a value


def tags_of(id: TaskId, task: Task) -> dict[str, str]:
    """The user's own tags, and ours."""
    ours = {"Name": str(id), ID: str(id), "sojourn:version": version("sojourn")}
    if task.name:
        ours["sojourn:name"] = task.name[:_LONGEST]
    if task.storage.container:
        ours[CONTAINER] = task.storage.container
    return {**task.tags, **ours}


def to_list(tags: dict[str, str]) -> list[dict[str, str]]:
    """As most services want them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]
