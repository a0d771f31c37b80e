"""The objects of mpi-operator, as `sojourn mpi install` applies them.

Its release has a schema of 665 kB for MPIJobs, almost all of it the one of pods. Kubernetes checks
pods anyway when they are made, so the schema here leaves templates to it. Rights are those that the
program uses, and no others: those of its release also have what former versions needed.
"""

from __future__ import annotations

from typing import Any

from sojourn.clouds.k8s.names import OURS

__all__ = [
    "CRD",
    "DEPLOYMENT",
    "NAME",
    "RULES",
    "WHERE",
    "cluster_objects",
    "crd",
    "inner_objects",
    "namespace_object",
]

CRD = "mpijobs.kubeflow.org"
GROUP, API = "kubeflow.org", "v2beta1"
NAME = "sojourn-mpi-operator"  # of what is of the whole cluster: others may have the plain name
DEPLOYMENT = "mpi-operator"
WHERE = "sojourn/namespace"  # on the CRD: the namespace of the rest
_APP = {"app.kubernetes.io/name": "mpi-operator"}
_RBAC = "rbac.authorization.k8s.io"

_WATCH = ["list", "watch"]
RULES: list[dict[str, Any]] = [
    {
        "apiGroups": [""],
        "resources": ["configmaps", "secrets", "services"],
        "verbs": ["create", "update", *_WATCH],
    },
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", *_WATCH]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "update", *_WATCH]},
    {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["update"]},
    {"apiGroups": [GROUP], "resources": ["mpijobs"], "verbs": _WATCH},
    # Some clusters check the second one for whoever makes objects that an MPIJob owns.
    {
        "apiGroups": [GROUP],
        "resources": ["mpijobs/status", "mpijobs/finalizers"],
        "verbs": ["update"],
    },
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "resourceNames": ["mpi-operator"],
        "verbs": ["get", "update"],
    },
    {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": _WATCH},
]


def cluster_objects(namespace: str) -> list[dict[str, Any]]:
    """What the whole cluster has of it, beside the CRD."""
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": NAME}
    account = {"kind": "ServiceAccount", "name": DEPLOYMENT, "namespace": namespace}
    return [
        _object(f"{_RBAC}/v1", "ClusterRole", NAME, rules=RULES),
        _object(f"{_RBAC}/v1", "ClusterRoleBinding", NAME, roleRef=role, subjects=[account]),
    ]


def inner_objects(image: str, namespace: str) -> list[dict[str, Any]]:
    """What is in its namespace."""
    return [
        _object("v1", "ServiceAccount", DEPLOYMENT),
        _object("apps/v1", "Deployment", DEPLOYMENT, spec=_deployment(image, namespace)),
    ]


def namespace_object(name: str) -> dict[str, Any]:
    """Made if there is none of this name."""
    return _object("v1", "Namespace", name)


def crd(namespace: str) -> dict[str, Any]:
    """The kind MPIJob, which also tells where the rest is."""
    names = {"kind": "MPIJob", "listKind": "MPIJobList", "plural": "mpijobs", "singular": "mpijob"}
    version = {
        "name": API,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _schema()},
    }
    spec = {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]}
    made = _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", CRD, spec=spec)
    made["metadata"]["annotations"] = {WHERE: namespace}
    return made


def _object(version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    key, value = OURS.split("=")
    metadata = {"name": name, "labels": {key: value, **_APP}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _deployment(image: str, namespace: str) -> dict[str, Any]:
    container = {
        "name": "mpi-operator",
        "image": image,
        "args": ["-alsologtostderr", f"--lock-namespace={namespace}"],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "serviceAccountName": DEPLOYMENT,
        "containers": [container],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    # Neither of two would work while the other one is asked to go.
    return {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _APP},
        "template": {
            "metadata": {"labels": _APP, "annotations": {"sidecar.istio.io/inject": "false"}},
            "spec": pod,
        },
    }


def _schema() -> dict[str, Any]:
    replicas = {
        "type": "object",
        "properties": {
            "replicas": _integer("int32"),
            "restartPolicy": {"type": "string"},
            "template": _open(),
        },
    }
    spec = {
        "type": "object",
        "required": ["mpiReplicaSpecs"],
        "properties": {
            "launcherCreationPolicy": {"type": "string", "default": "AtStartup"},
            "mpiImplementation": {
                "type": "string",
                "enum": ["OpenMPI", "Intel", "MPICH"],
                "default": "OpenMPI",
            },
            "mpiReplicaSpecs": {"type": "object", "additionalProperties": replicas},
            "runLauncherAsWorker": {"type": "boolean", "default": False},
            "runPolicy": _run_policy(),
            "slotsPerWorker": {**_integer("int32"), "default": 1},
            "sshAuthMountPath": {"type": "string", "default": "/root/.ssh"},
        },
    }
    own = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    properties = {**own, "metadata": {"type": "object"}, "spec": spec, "status": _open()}
    return {"type": "object", "properties": properties}


def _run_policy() -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "activeDeadlineSeconds": _integer("int64"),
            "backoffLimit": _integer("int32"),
            "cleanPodPolicy": {"type": "string"},
            "managedBy": {"type": "string"},
            "schedulingPolicy": _open(),
            "suspend": {"type": "boolean", "default": False},
            "ttlSecondsAfterFinished": _integer("int32"),
        },
    }


def _integer(width: str) -> dict[str, Any]:
    return {"type": "integer", "format": width}


def _open() -> dict[str, Any]:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
