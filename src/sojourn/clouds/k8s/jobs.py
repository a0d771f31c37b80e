"""The Job of a rank.

A Job of Kubernetes waits longer and longer before it replaces a pod that failed: ten seconds, then
twenty, and minutes in the end. Pods of spot nodes fail often, and through no fault of theirs. So
the Job of a rank is an indexed one with many indexes, of which one at a time is at work: an index
may fail only once, and then the next one starts without any wait. The first that succeeds is
enough. Which of them it is tells nobody anything: the agent knows its rank, and carries on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.pod import machine_template

if TYPE_CHECKING:
    from sojourn.clouds.k8s.pod import Place
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.kube.api import Object

__all__ = [
    "condition",
    "deadline",
    "ended",
    "has_run",
    "job",
    "may_have_run",
    "rank_of",
    "suspended",
]

_PODS = 1000  # at most, one after the other
_WEEK = 7 * 86400
_LONGEST = 2**31 - 1  # seconds: Kubernetes counts nanoseconds, and would come to less than none
_AGAIN = "sojourn/again"  # "yes": this Job took the place of one that had ended
_STARTED = 2  # the generation of a Job that was made suspended, and started once
_COUNTED = ("succeeded", "failed", "completedIndexes", "failedIndexes")  # pods that have ended
_PODS_IN_TIME = 10  # pods that may use all of the task's time before the whole Job ends


def job(
    id: TaskId,
    task: Task,
    rank: int,
    place: Place,
    *,
    suspend: bool,
    spot: bool,
    restricted: bool,
    again: bool = False,
) -> dict[str, Any]:
    """As the API server takes it. `again`: an earlier one had pods."""
    metadata = names.metadata(id, names.job_name(id, rank), task, rank=str(rank))
    if again:
        metadata["annotations"] = {**metadata.get("annotations", {}), _AGAIN: "yes"}
    template = machine_template(id, task, rank, place, spot=spot, restricted=restricted)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "activeDeadlineSeconds": deadline(task),
            "backoffLimitPerIndex": 0,
            "completionMode": "Indexed",
            "completions": _PODS,
            "parallelism": 1,
            # Not only after it has failed: a pod of a node that is lost never does.
            "podReplacementPolicy": "TerminatingOrFailed",
            "successPolicy": {"rules": [{"succeededCount": 1}]},
            "suspend": suspend,
            "template": template,
        },
    }


def deadline(task: Task) -> int:
    """Seconds for all pods of a rank together: no Job lives for ever."""
    return min(_WEEK + _PODS_IN_TIME * (task.timeout or _LONGEST), _LONGEST)


def rank_of(made: Object) -> int:
    """Of a Job or a pod; the workers of an MPI program have it from mpi-operator."""
    labels = made["metadata"]["labels"]
    return int(labels[names.RANK] if names.RANK in labels else labels[names.INDEX])


def suspended(found: Object) -> bool:
    """Whether a Job has no pods, because nobody wants any."""
    return bool(found["spec"].get("suspend"))


def condition(found: Object, kind: str) -> Object | None:
    """A condition of a Job, pod or claim that holds."""
    conditions = found.get("status", {}).get("conditions") or ()
    return next((c for c in conditions if c["type"] == kind and c["status"] == "True"), None)


def may_have_run(found: Object) -> bool:
    """Whether a Job may have had a pod that ran and is gone.

    It counts pods that end, and forgets them only when it is suspended.
    """
    metadata, status = found["metadata"], found.get("status") or {}
    return (
        bool((metadata.get("annotations") or {}).get(_AGAIN))
        or int(metadata["generation"]) > (1 if suspended(found) else _STARTED)
        or any(status.get(name) for name in _COUNTED)
    )


def has_run(pod: Object) -> bool:
    """Whether a container of a pod runs or has run."""
    states = [item["state"] for item in pod["status"].get("containerStatuses") or ()]
    return any("running" in state or "terminated" in state for state in states)


def ended(found: Object) -> bool:
    """Whether a Job makes no pods any more."""
    return any(condition(found, kind) for kind in ("Complete", "SuccessCriteriaMet", "Failed"))
