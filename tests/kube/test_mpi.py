"""mpi-operator from our manifest carries out a real MPIJob, on both nodes."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.kube.api import Api
from tests.kube import mpi_images
from tests.kube.namespaces import Namespace
from tests.support.waiting import until

_JOBS = "/apis/kubeflow.org/v2beta1/namespaces/{}/mpijobs"
_AS_ROOT = [
    {"name": name, "value": "1"}
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
]
_HOME = "/home/mpiuser"
_SSHD = ["/usr/sbin/sshd", "-De", "-f", f"{_HOME}/.sshd_config"]


def _replicas(number: int, image: str, command: list[str]) -> dict[str, Any]:
    container = {"name": "main", "image": image, "env": _AS_ROOT, "command": command}
    apart = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"training.kubeflow.org/job-role": "worker"}},
    }
    spread = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    spec = {"containers": [container], **({"affinity": spread} if number > 1 else {})}
    return {"replicas": number, "template": {"spec": spec}}


def _job(image: str, sshd: list[str], script: str = "true", **more: Any) -> dict[str, Any]:
    """One that runs a script first, and then tells where it runs."""
    command = ["sh", "-c", f"{script} && exec mpirun -n 2 hostname"]
    replicas = {
        "Launcher": _replicas(1, image, command),
        "Worker": _replicas(2, image, sshd),
    }
    spec = {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas, **more}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "hello"},
        "spec": {"runPolicy": {"cleanPodPolicy": "Running"}, **spec},
    }


@pytest.mark.parametrize("user", ["root", "mpiuser"])
def test_a_job_runs_on_two_nodes(mpi_operator: Api, kube_namespace: Namespace, user: str) -> None:
    job = _job(mpi_images.MPI, ["/usr/sbin/sshd", "-De"])
    if user == "mpiuser":
        job = _job(mpi_images.MPI_AS_USER, _SSHD, sshAuthMountPath=f"{_HOME}/.ssh")
    kube_namespace.api.create(_JOBS.format(kube_namespace.name), job)
    assert _printed(kube_namespace) == ["hello-worker-0", "hello-worker-1"]


def test_a_job_is_suspended_and_resumed(mpi_operator: Api, kube_namespace: Namespace) -> None:
    job = _job(mpi_images.MPI, ["/usr/sbin/sshd", "-De"], "sleep 1000")
    kube_namespace.api.create(_JOBS.format(kube_namespace.name), job)
    path = f"{_JOBS.format(kube_namespace.name)}/hello"
    until(lambda: _conditions(kube_namespace).get("Running") == "True", 120)
    kube_namespace.api.patch(path, {"spec": {"runPolicy": {"suspend": True}}})
    until(lambda: _conditions(kube_namespace).get("Suspended") == "True", 60)
    until(lambda: not kube_namespace.api.get(f"{kube_namespace.path}/pods")["items"], 120)
    kube_namespace.api.patch(path, {"spec": {"runPolicy": {"suspend": False}}})
    until(lambda: _conditions(kube_namespace).get("Running") == "True", 120)


def _printed(namespace: Namespace) -> list[str]:
    """What its launcher printed, when it is done."""
    until(lambda: {"Succeeded", "Failed"} & _conditions(namespace).keys(), 120)
    assert _conditions(namespace).get("Succeeded") == "True", _conditions(namespace)
    pods = f"{namespace.path}/pods"
    [launcher] = [
        item["metadata"]["name"]
        for item in namespace.api.get(pods)["items"]
        if item["metadata"]["labels"]["training.kubeflow.org/job-role"] == "launcher"
    ]
    return sorted(namespace.api.text(f"{pods}/{launcher}/log").split())


def _conditions(namespace: Namespace) -> dict[str, str]:
    job = namespace.api.get(f"{_JOBS.format(namespace.name)}/hello")
    found = job.get("status", {}).get("conditions", [])
    return {each["type"]: each["status"] for each in found}
