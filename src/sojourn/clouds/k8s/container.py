"""`storage.container`: a claim that is there already, with a path in it, or the URL of a bucket."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.clouds.k8s.pod import Place
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["is_bucket", "overlap", "place_of"]

_URL = re.compile(r"(s3|gs|az|azure|abfss?|https?)://[^/\s]+(/\S*)?")
_CLAIM = re.compile(
    r"(?P<name>[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(/(?P<path>[\w.=+@:/-]*))?", re.ASCII
)


def is_bucket(container: str) -> bool:
    """Whether it is a URL."""
    return "://" in container


def place_of(id: TaskId, task: Task) -> Place:
    """Where the store of a task is or will be."""
    container = task.storage.container
    if not container:
        return Place(claim=str(id), folder=str(id))
    if is_bucket(container):
        if not _URL.fullmatch(container):
            raise InvalidInput(
                "storage.container",
                "must be a claim, or the URL of a bucket (s3://, gs:// or az://), "
                f"got {container!r}",
            )
        return Place(url=f"{container.rstrip('/')}/{id}")
    found = _CLAIM.fullmatch(container)
    parts = (found["path"] or "").strip("/").split("/") if found else ()
    if not found or {".", ".."} & set(parts) or "" in parts[1:]:
        raise InvalidInput(
            "storage.container",
            f"must be CLAIM or CLAIM/path, or the URL of a bucket, got {container!r}",
        )
    if task.storage.container_opts:
        raise InvalidInput("storage.container_opts", "only supported for buckets on Kubernetes")
    folder = str(id) if found["path"] is None else "/".join(parts)
    return Place(claim=found["name"], folder=folder)


def overlap(one: Place, other: Place) -> bool:
    """Whether two folders of a claim are the same, or one of them is inside the other."""
    if not one.claim or one.claim != other.claim:
        return False
    parts, others = ([part for part in each.folder.split("/") if part] for each in (one, other))
    least = min(len(parts), len(others))
    return parts[:least] == others[:least]
