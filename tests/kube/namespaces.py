"""A namespace of a test: what it holds, and short ways to make and read things in it."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kube import commands, images
from tests.kube.api import Api
from tests.support.waiting import until

__all__ = ["Namespace"]

# Every namespace has these.
_OF_KUBERNETES = {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")}
_GROUPS = ("/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/rbac.authorization.k8s.io/v1")
_MPI = "/apis/kubeflow.org/v2beta1"  # if mpi-operator is installed; first, as it makes the others
_WITHIN = 120


@functools.cache
def _kinds(api: Api) -> list[tuple[str, str, str]]:
    """Group, kind and name of what can be in a namespace; events are only history."""
    return [
        (group, resource["kind"], resource["name"])
        for group in _GROUPS
        for resource in api.get(group)["resources"]
        if resource["namespaced"] and "list" in resource["verbs"] and resource["kind"] != "Event"
    ]


@dataclass(frozen=True)
class Namespace:
    """Its `path` is the one of the core API in it."""

    api: Api
    name: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.name}"

    def create(self) -> None:
        """Return when pods can be made."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.name}})
        until(lambda: self.api.exists(f"{self.path}/serviceaccounts/default"), _WITHIN)

    def remove(self) -> None:
        """With all in it. Of itself, the namespace takes another five seconds, which is no news."""
        patient_until = time.monotonic() + _WITHIN / 2
        until(lambda: self._emptied(forced=time.monotonic() > patient_until), _WITHIN)
        until(lambda: not self.volumes(), _WITHIN)
        self.api.delete(self.path)

    def objects(self) -> list[str]:
        """Kind and name of all that somebody made in it."""
        return sorted(f"{kind} {path.rpartition('/')[2]}" for kind, path in self._found())

    def _emptied(self, *, forced: bool) -> bool:
        """Whether nothing is left; what is left is told to go."""
        found = self._found()
        for _, path in found:
            grace = "0" if forced else "1"
            self.api.delete(path, gracePeriodSeconds=grace, propagationPolicy="Background")
        return not found

    def _found(self) -> list[tuple[str, str]]:
        """Kind and path of each."""
        found = []
        jobs = [(_MPI, "MPIJob", "mpijobs")] if self.api.exists(_MPI) else []
        for group, kind, name in [*jobs, *_kinds(self.api)]:
            for item in self.api.get(f"{group}/namespaces/{self.name}/{name}")["items"]:
                title = item["metadata"]["name"]
                if (kind, title) not in _OF_KUBERNETES:
                    found.append((kind, f"{group}/namespaces/{self.name}/{name}/{title}"))
        return found

    def volumes(self) -> list[str]:
        """Names of the volumes that its claims had made."""
        return [
            volume["metadata"]["name"]
            for volume in self.api.get("/api/v1/persistentvolumes")["items"]
            if volume["spec"].get("claimRef", {}).get("namespace") == self.name
        ]

    def run_pod(
        self,
        name: str,
        script: str = "sleep 10000",
        *,
        image: str = images.SHELL,
        node: str | None = None,
        claims: Mapping[str, str] | None = None,
    ) -> str:
        """Start a script in a pod, with the volume of each claim at its path; the pod's path."""
        claims = claims or {}
        mounts = [{"name": claim, "mountPath": path} for claim, path in claims.items()]
        volumes = [{"name": x, "persistentVolumeClaim": {"claimName": x}} for x in claims]
        container = {"name": "main", "image": image, "command": ["sh", "-c", script]}
        selected = {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        spec = {
            "containers": [{**container, "volumeMounts": mounts}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "volumes": volumes,
            **selected,
        }
        self.api.create(f"{self.path}/pods", {"metadata": {"name": name}, "spec": spec})
        return f"{self.path}/pods/{name}"

    def claim(self, name: str, mode: str, storage_class: str | None = None) -> str:
        """Ask for a volume; the claim's path."""
        spec: dict[str, Any] = {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            **({"storageClassName": storage_class} if storage_class else {}),
        }
        claims = f"{self.path}/persistentvolumeclaims"
        self.api.create(claims, {"metadata": {"name": name}, "spec": spec})
        return f"{claims}/{name}"

    def wait(self, path: str, phase: str) -> None:
        """Until the pod or claim has this phase."""
        until(lambda: self.api.get(path)["status"].get("phase") == phase, _WITHIN)

    def execute(self, pod: str, command: Sequence[str], stdin: bytes = b"") -> commands.Ran:
        return commands.run(self.api, pod, command, stdin)

    def events(self, reason: str) -> list[str]:
        """The messages of this kind."""
        items = self.api.get(f"{self.path}/events", fieldSelector=f"reason={reason}")["items"]
        return [item["message"] for item in items]
