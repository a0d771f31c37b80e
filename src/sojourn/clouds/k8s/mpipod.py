"""What a pod of an MPI program has beside what every machine has.

A worker's rank is the index that mpi-operator gives it as a label; the launcher is rank 0, and is
counted. Its agent, and nothing else in the pod, can have pods of its own program made anew: only
mpi-operator makes them, and it leaves those that failed where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.on_machine import places

if TYPE_CHECKING:
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["add_account", "rank_variable"]

_TOKEN_LASTS = 3600  # seconds; the node renews it
_AUTHORITY = "kube-root-ca.crt"  # a ConfigMap of every namespace


def rank_variable(rank: int) -> dict[str, Any]:
    """Which rank the agent carries out; -1: the one that the pod's label tells."""
    if rank >= 0:
        return {"name": "SOJOURN_RANK", "value": str(rank)}
    path = f"metadata.labels['{names.INDEX}']"
    return {"name": "SOJOURN_RANK", "valueFrom": {"fieldRef": {"fieldPath": path}}}


def add_account(spec: dict[str, Any], id: TaskId, task: Task) -> None:
    """A token for the agent's container alone."""
    spec["serviceAccountName"] = task.permission_set or str(id)
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_LASTS}}
    authority = {"configMap": {"name": _AUTHORITY, "items": [{"key": "ca.crt", "path": "ca.crt"}]}}
    space = {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
        }
    }
    volume = {"projected": {"sources": [token, authority, space], "defaultMode": 0o444}}
    spec["volumes"].append({"name": "account", **volume})
    for container in spec["containers"]:
        if container["name"] == names.AGENT:
            mount = {"name": "account", "mountPath": places.ACCOUNT, "readOnly": True}
            container["volumeMounts"].append(mount)
