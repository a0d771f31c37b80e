"""How all that is made for a task is named and labelled, so that any laptop finds it again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = [
    "AGENT",
    "ID",
    "INDEX",
    "MACHINES",
    "OURS",
    "QUEUE",
    "RANK",
    "RANKS",
    "ROLE",
    "SCRIPT",
    "STORE",
    "files",
    "group",
    "job_name",
    "machines",
    "metadata",
    "of_task",
    "program",
    "store_pod",
]

OURS = "app.kubernetes.io/managed-by=sojourn"
ID = "sojourn/id"
RANK = "sojourn/rank"
RANKS = "sojourn/ranks"  # how many there are, if no Job of each tells
INDEX = "training.kubeflow.org/replica-index"  # mpi-operator's
ROLE = "sojourn/role"
QUEUE = "scheduling.volcano.sh/queue-name"  # Volcano's
MACHINES, STORE = "machine", "store"  # roles of pods
SCRIPT, AGENT = "script", "agent"  # containers
_TAGS = "sojourn/tags"
_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_PREFIX = re.compile(rf"{_LABEL}(\.{_LABEL})*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_LONGEST_PREFIX = 253
_VALUE = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", re.ASCII)
# Ours, and those by which Kubernetes tells pods apart.
_RESERVED = ("app.kubernetes.io/managed-by", "controller-uid", "job-name")
_RESERVED_PREFIXES = ("sojourn", "kubernetes.io", "k8s.io", "batch.kubernetes.io")


def of_task(id: TaskId, **more: str) -> str:
    """The selector of all that is of a task."""
    return ",".join([f"{ID}={id}", *(f"sojourn/{key}={value}" for key, value in more.items())])


def machines(id: TaskId) -> dict[str, str]:
    """The labels of all pods of a task that are machines."""
    return {ID: str(id), ROLE: MACHINES}


def job_name(id: TaskId, rank: int) -> str:
    """Of a rank's Job."""
    return f"{id}-{rank}"


def group(id: TaskId) -> str:
    """Of the pods that a scheduler starts together; mpi-operator may have one named as the task."""
    return f"{id}-gang"


def program(id: TaskId, number: int) -> str:
    """Of a part of the agent's program; the first is named after the task."""
    return f"{id}-program-{number}" if number else str(id)


def files(id: TaskId) -> str:
    """Of the ConfigMap with a task's small files."""
    return f"{id}-files"


def store_pod(id: TaskId) -> str:
    """Of the pod that is made when nobody else has the store."""
    return f"{id}-store"


def metadata(id: TaskId, name: str, task: Task | None, **labels: str) -> dict[str, Any]:
    """Labels are the user's tags, where they fit, and ours; other tags become an annotation."""
    fitting = {k: v for k, v in (task.tags if task else {}).items() if _fits(k, v)}
    others = {k: v for k, v in (task.tags if task else {}).items() if k not in fitting}
    key, value = OURS.split("=")
    ours = {key: value, ID: str(id), **{f"sojourn/{k}": v for k, v in labels.items()}}
    made: dict[str, Any] = {"name": name, "labels": {**fitting, **ours}}
    if others:
        made["annotations"] = {_TAGS: json.dumps(others, sort_keys=True)}
    return made


def _fits(key: str, value: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if key in _RESERVED or prefix in _RESERVED_PREFIXES:
        return False
    if slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix)):
        return False
    return bool(_NAME.fullmatch(name) and _VALUE.fullmatch(value))
