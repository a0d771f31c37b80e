"""MPI on Kubernetes, on the cluster for tests: from the command to the first line of `mpirun
hostname` on two machines, beside `kubectl apply` of an MPIJob by hand.

Needs `make kube` and kubectl. Both sides use the same image and the same mpi-operator, in turn.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.cluster import kubectl, namespace
from sojourn.clouds.k8s.operator import KubernetesMpiOperator
from sojourn.core.context import Context

_SOJOURN = Path(sys.executable).with_name("sojourn")
_RATIO = 1.3
_WITHIN = 180.0  # seconds


def main(*, quick: bool = False) -> None:
    from tests.kube import prerequisites

    reason = prerequisites.unavailable()
    if not shutil.which("kubectl") or reason:
        print(f"Skipped: {reason or 'kubectl is not installed'}")
        return
    with namespace() as (api, _):
        KubernetesMpiOperator(api).install(Context())
        print("From the command to the first line of `mpirun hostname`; seconds, medians")
        rounds = range(1 if quick else 5)
        times = [(_by_hand(), _ours()) for _ in rounds]
        theirs, ours = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"  kubectl {theirs:.2f}, sojourn {ours:.2f}: {ours / theirs:.2f}x")
        met = "met" if ours / theirs <= _RATIO else "NOT met"
        print(f"  bar: at most {_RATIO}x: {met}")


def _by_hand() -> float:
    from tests.kube import mpi_images

    began = time.monotonic()
    kubectl("apply", "-f", "-", given=json.dumps(_job(mpi_images.MPI)))
    while not kubectl("logs", "job/hello-launcher", check=False).strip():
        _patient(began)
    took = time.monotonic() - began
    kubectl("delete", "mpijob", "hello", "--cascade=foreground", "--wait")
    while kubectl("get", "pods,jobs", "--output=name").strip():
        _patient(began)
    return took


def _job(image: str) -> dict[str, Any]:
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "hello"},
        "spec": {
            "launcherCreationPolicy": "WaitForWorkersReady",
            "runLauncherAsWorker": True,
            "runPolicy": {"cleanPodPolicy": "Running"},
            "mpiReplicaSpecs": {
                "Launcher": _replicas(image, ["mpirun", "-n", "2", "hostname"]),
                "Worker": _replicas(image, ["/usr/sbin/sshd", "-De"]),
            },
        },
    }


def _replicas(image: str, command: list[str]) -> dict[str, Any]:
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "env": [{"name": name, "value": "1"} for name in as_root],
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"replicas": 1, "template": {"spec": spec}}


def _ours() -> float:
    from tests.kube import mpi_images

    where = ["--cloud", "k8s", "--machine", "s", "--image", mpi_images.MPI]
    what = ["--mpi", "--parallelism", "2", "--option", "storage_class=shared", "--no-output"]
    command = [str(_SOJOURN), "run", *where, *what, "--", "mpirun", "hostname"]
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        took = time.monotonic() - began
        process.stdout.read()
    if not first or process.returncode:
        raise SystemExit(f"sojourn failed with exit code {process.returncode}")
    return took


def _patient(began: float) -> None:
    if time.monotonic() - began > _WITHIN:
        raise SystemExit("it took too long")
