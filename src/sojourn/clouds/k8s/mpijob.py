"""The MPIJob of a task: a launcher, which is rank 0, and workers, which are the other ranks.

All of them are machines like any other, with the agent beside the script. mpi-operator only makes
them: when they start, what they run and when they have ended is for the agents to agree on. So
nothing here depends on what the operator counts as a success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.jobs import condition, deadline
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.options import options_of
from sojourn.clouds.k8s.pod import machine_template

if TYPE_CHECKING:
    from sojourn.clouds.k8s.pod import Place
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.kube.api import Object

__all__ = ["KIND", "given_up", "may_have_started", "mpijob", "paused"]

KIND = "MPIJob"
_VERSION = "kubeflow.org/v2beta1"
_IMPLEMENTATIONS = {"openmpi": "OpenMPI", "intel": "Intel", "mpich": "MPICH"}
_LAUNCHERS = 1000  # at most; as agents have a new Job made for each, far more than it ever comes to
_MADE, _STARTED = 1, 2  # generations of an MPIJob that was made suspended, and started once


def mpijob(
    id: TaskId, task: Task, place: Place, *, suspend: bool, spot: bool, restricted: bool
) -> dict[str, Any]:
    """As the API server takes it."""
    assert task.mpi is not None  # noqa: S101 -- asked before
    roles = {"Launcher": (0, 1), "Worker": (-1, task.parallelism - 1)}
    replicas = {
        role: {
            "replicas": count,
            "restartPolicy": "Never",
            "template": machine_template(id, task, rank, place, spot=spot, restricted=restricted),
        }
        for role, (rank, count) in roles.items()
        if count
    }
    metadata = names.metadata(id, str(id), task)
    if queue := options_of(task).queue:  # for an operator that makes groups itself
        metadata.setdefault("annotations", {})[names.QUEUE] = queue
    return {
        "apiVersion": _VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {
            # The agents wait for each other, so that nobody has to wait for anybody's pod.
            "launcherCreationPolicy": "AtStartup",
            "mpiImplementation": _IMPLEMENTATIONS[task.mpi.implementation],
            "mpiReplicaSpecs": replicas,
            "runLauncherAsWorker": True,
            "runPolicy": {
                "activeDeadlineSeconds": deadline(task),
                "backoffLimit": _LAUNCHERS,
                # Agents end by themselves, and store what they have before they do.
                "cleanPodPolicy": "None",
                "suspend": suspend,
            },
            "slotsPerWorker": task.mpi.slots,
            # Of no user in particular: who uses the keys copies them, whoever that is.
            "sshAuthMountPath": places.KEYS,
        },
    }


def paused(found: Object) -> bool:
    """Whether it has no pods, because nobody wants any."""
    return bool((found["spec"].get("runPolicy") or {}).get("suspend"))


def given_up(found: Object) -> Object | None:
    """Why the operator makes no pods any more, though it may say `Failed` and go on.

    An evicted worker makes it say so; it is only true when there is a time of completion.
    """
    if not (found.get("status") or {}).get("completionTime"):
        return None
    return condition(found, "Failed") or condition(found, "Succeeded")


def may_have_started(found: Object) -> bool:
    """Whether it may have had pods that ran and are gone."""
    return int(found["metadata"]["generation"]) > (_MADE if paused(found) else _STARTED)
