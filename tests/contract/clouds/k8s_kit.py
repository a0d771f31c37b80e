"""Kubernetes' kit: a namespace of a real cluster."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from sojourn import Handle
from sojourn.clouds.k8s import names, options, resources
from sojourn.clouds.k8s.objects import TaskObjects
from sojourn.clouds.k8s.operator import KubernetesMpiOperator
from sojourn.clouds.k8s.scaler import is_machine
from sojourn.core.context import Context
from sojourn.core.errors import NotFound
from sojourn.core.ids import TaskId
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load
from sojourn.kube.websocket import execute
from tests.contract.clouds.kit import Kit
from tests.kube import images, mpi_images
from tests.kube.in_use import cluster_in_use
from tests.support.waiting import patience, until

MARKS = [pytest.mark.kube]

_WHEELS = Path(sys.prefix) / "wheels"  # `make` puts them there
_SHARED = os.environ.get("SOJOURN_K8S_STORAGE_CLASS", "shared")  # that all nodes reach
_KINDS = (
    *("Secret", "ConfigMap", "PersistentVolumeClaim", "Job", "Pod", "Service", "NetworkPolicy"),
    *("ServiceAccount", "Role", "RoleBinding", "MPIJob"),
)
_OF_EVERY_NAMESPACE = ("default", "kube-root-ca.crt")
# Of tests with an account of their own, which goes with the namespace.
_OF_TESTS = ("sojourn", "sojourn-gangs")
_AGE = """\
import os, sys
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(folder, name)
        before = os.stat(path).st_mtime - float(sys.argv[2])
        os.utime(path, (before, before))
"""


class KubernetesKit:
    cloud = "k8s"

    def __init__(self, root: Path, kubeconfig: Path) -> None:
        self._root = root
        self._kubeconfig = kubeconfig
        self._namespace = f"sojourn-{uuid.uuid4().hex[:8]}"
        self._patched = pytest.MonkeyPatch()
        # Nobody wants to wait for a minute until a machine that was lost counts as lost.
        self._patched.setattr(resources, "_TTL", 4.0)
        (root / "cache" / "sojourn").mkdir(parents=True)
        (root / "cache" / "sojourn" / "wheels").symlink_to(_WHEELS)
        with pytest.MonkeyPatch.context() as during:
            for name, value in self.environment().items():
                during.setenv(name, value)
            self.api = Api(load)
            self.api.create("Namespace", {"metadata": {"name": self._namespace}})
        until(self._is_ready)

    def _is_ready(self) -> bool:
        """Pods are refused until the namespace has an account for them."""
        return self.api.find("ServiceAccount", "default") is not None

    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self._root),
            "KUBECONFIG": str(self._kubeconfig),
            "SOJOURN_K8S_AGENT_IMAGE": images.PYTHON,
            "SOJOURN_K8S_NAMESPACE": self._namespace,
            "SOJOURN_K8S_STORAGE_CLASS": _SHARED,
            "XDG_DATA_HOME": str(self._root / "data"),
            "XDG_CACHE_HOME": str(self._root / "cache"),
            "XDG_STATE_HOME": str(self._root / "state"),
        }

    def machine_disk(self, size: int) -> Path | None:
        return None

    def appear(self, name: str) -> None:
        for pod in self._machines():
            self._run(pod["metadata"]["name"], names.SCRIPT, "touch", f"/dev/shm/{name}")

    def lose_agent(self, handle: Handle, rank: int) -> None:
        """If the nodes are on this computer, by its process; else by its pod."""
        machine = handle.status().ranks[rank].machine
        mark = f"SOJOURN_MACHINE={machine}\0".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                life = b"on_machine.life" in (process / "cmdline").read_bytes()
                if life and mark in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
                    return
        self.api.delete("Pod", machine, grace=0)

    def lose_scaler(self, handle: Handle) -> bool:
        return False

    def age(self, seconds: float) -> None:
        for secret in self.api.list("Secret", names.OURS):
            objects = TaskObjects(self.api, TaskId.parse(secret["metadata"]["name"]), None)
            with suppress(NotFound):  # a creation that broke off early has none
                pod = objects.door._pod()
                self._run(pod, names.AGENT, "python3", "-c", _AGE, objects.folder, str(seconds))
                objects.door.close()
            before = datetime.now(timezone.utc) - timedelta(seconds=seconds)
            written = dict.fromkeys(secret["data"], before.isoformat())
            marks = {"sojourn/written": json.dumps(written)}
            self.api.merge("Secret", objects.name, {"metadata": {"annotations": marks}})

    def _run(self, pod: str, container: str, *command: str) -> None:
        process = execute(self.api, pod, container, list(command))
        try:
            told = b"".join(data for _, data in process.output())
            assert process.wait() == 0, told
        finally:
            process.close()

    def _machines(self) -> list[dict[str, Any]]:
        labels = f"{names.OURS},{names.ROLE}={names.MACHINES}"
        return [pod for pod in self.api.list("Pod", labels) if is_machine(pod) and _works(pod)]

    def processes(self) -> list[str]:
        return [f"pod {pod['metadata']['name']}" for pod in self._machines()]

    def leaks(self) -> list[str]:
        # A pod for a transfer needs a moment to end. What belongs to an MPIJob goes with it, but a
        # cluster looks only every 30 s for new kinds of objects that others belong to.
        give_up = time.monotonic() + patience(40)
        while (found := self._objects()) and time.monotonic() < give_up:
            time.sleep(0.1)
        return found

    def _objects(self) -> list[str]:
        return [
            f"{kind} {item['metadata']['name']}"
            for kind in _KINDS
            if kind != "MPIJob" or self.api.serves(kind)
            for item in self.api.list(kind)
            if item["metadata"]["name"] not in (*_OF_EVERY_NAMESPACE, *_OF_TESTS)
        ]

    def inside(self) -> None:
        """A script's container has neither the store nor the agent."""

    def mpi(self) -> dict[str, str] | None:
        """Tasks without an image have one with MPI from then on."""
        KubernetesMpiOperator(self.api).install(Context())
        self._patched.setitem(options._IMAGES, "ubuntu", mpi_images.MPI)
        return {"OMPI_MCA_mpi_yield_when_idle": "1"}  # all pods share the same few processors

    def close(self) -> None:
        self._patched.undo()
        self.api.delete("Namespace", self._namespace)


def _works(pod: dict[str, Any]) -> bool:
    """Whether its script's container runs; the agent's may stay for those who fetch results."""
    found = {item["name"]: item["state"] for item in pod["status"]["containerStatuses"]}
    return "running" in found[names.SCRIPT]


def make(tmp_path_factory: pytest.TempPathFactory) -> KubernetesKit:
    return KubernetesKit(tmp_path_factory.mktemp("k8s"), cluster_in_use().kubeconfig)


def contract(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """The cluster that the contract suite uses."""
    return make(tmp_path_factory)
