"""The small files of a task at absolute paths: a ConfigMap, mounted file by file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.options import TAKEN
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import absolute

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["check", "mounts", "numbered", "volumes"]

_VOLUME = "files"


def check(task: Task) -> None:
    """Refuse paths at which nothing can be mounted, or where machines have what is theirs."""
    for path in absolute(task.files):
        if ":" in path or path.split("/")[1] in TAKEN:
            raise InvalidInput(
                "files",
                f"must be outside /{', /'.join(name for name in TAKEN if name)} and without a "
                f"colon on Kubernetes, got {path!r}",
            )


def mounts(task: Task) -> list[dict[str, Any]]:
    """Of the script's container."""
    return [
        {"name": _VOLUME, "mountPath": path, "subPath": key, "readOnly": True}
        for key, path, _ in numbered(task)
    ]


def volumes(id: TaskId, task: Task) -> list[dict[str, Any]]:
    """Of a machine's pod."""
    if not absolute(task.files):
        return []
    return [{"name": _VOLUME, "configMap": {"name": names.files(id)}}]


def numbered(task: Task) -> list[tuple[str, str, str]]:
    """Key, path and text of each: a path is no key of a ConfigMap."""
    files = sorted(absolute(task.files).items())
    return [(str(number), path, text) for number, (path, text) in enumerate(files)]
