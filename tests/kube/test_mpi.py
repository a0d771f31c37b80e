"""mpi-operator from our manifest carries out a real MPIJob, on both nodes."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.k8s.api import Api
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


def _job(image: str, sshd: list[str], **more: Any) -> dict[str, Any]:
    replicas = {
        "Launcher": _replicas(1, image, ["mpirun", "-n", "2", "hostname"]),
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
    path = _JOBS.format(kube_namespace.name)
    kube_namespace.api.create(path, job)

    def conditions() -> dict[str, str]:
        found = kube_namespace.api.get(f"{path}/hello").get("status", {}).get("conditions", [])
        return {each["type"]: each["status"] for each in found}

    until(lambda: "Succeeded" in conditions() or "Failed" in conditions(), 120)
    assert conditions()["Succeeded"] == "True", conditions()
    pods = f"{kube_namespace.path}/pods"
    [launcher] = [
        item["metadata"]["name"]
        for item in kube_namespace.api.get(pods)["items"]
        if item["metadata"]["labels"]["training.kubeflow.org/job-role"] == "launcher"
    ]
    printed = kube_namespace.api.text(f"{pods}/{launcher}/log").split()
    assert sorted(printed) == ["hello-worker-0", "hello-worker-1"]
