"""Has the pods of an MPI program made anew, from inside it: no laptop has to be there.

mpi-operator makes a worker only if there is none of that name, so one that failed, was evicted or
was on a node that is lost has to be deleted first. A launcher is replaced by its Job, which waits
longer and longer before it does; a new Job waits for nothing.
"""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.agent.background import Chore, say
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.on_machine.pods import stale

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

__all__ = ["Cluster", "Warden"]

_PROGRAM = "training.kubeflow.org/job-name"
_ROLE = "training.kubeflow.org/job-role"
_TIMEOUT = 10.0  # seconds for an answer
_LOOK_EVERY = 5.0  # seconds, of rank 0; of others a little more, so that few look at once
_LOOK_AT_LEAST_EVERY = 60.0


class Cluster:
    """The API server, as the account of this pod reaches it."""

    def __init__(self, account: Path = Path(places.ACCOUNT)) -> None:
        self._account = account
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        self._root = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        trusted = ssl.create_default_context(cafile=str(account / "ca.crt"))
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        self._namespace = (account / "namespace").read_text().strip()

    def pods(self, labels: str) -> list[dict[str, Any]]:
        query = urllib.parse.urlencode({"labelSelector": labels})
        return list(self._ask("GET", f"/api/v1/namespaces/{self._namespace}/pods?{query}")["items"])

    def delete_pod(self, name: str, uid: str, *, grace: int | None = None) -> None:
        self._delete(f"/api/v1/namespaces/{self._namespace}/pods/{name}", uid, grace)

    def delete_job(self, name: str, uid: str) -> None:
        self._delete(f"/apis/batch/v1/namespaces/{self._namespace}/jobs/{name}", uid, None)

    def _delete(self, path: str, uid: str, grace: int | None) -> None:
        """Absent, or another one has its name: nothing to do."""
        body: dict[str, Any] = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        try:
            self._ask("DELETE", path, body)
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409):
                raise

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        token = (self._account / "token").read_text().strip()  # the node renews it
        request = urllib.request.Request(
            f"{self._root}{path}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        # Straight there, as from every pod: a proxy of the image or of the namespace is for others.
        with self._opener.open(request, timeout=_TIMEOUT) as answer:
            return dict(json.load(answer))


class Warden:
    """Looks after the pods of a program, among which is its own. `uid`: of its pod."""

    def __init__(
        self, program: str, rank: int, machine: str, uid: str, connect: Callable[[], Cluster]
    ) -> None:
        self._program = program
        self._rank = rank
        self._machine = machine
        self._uid = uid
        self._connect = connect
        self._cluster: Cluster | None = None
        self._launching = ""  # the Job of the last launcher that was seen
        self._chore = Chore("warden", self._look, self._pause)

    def start(self) -> None:
        self._chore.start()

    def replace_own(self) -> None:
        """This pod cannot go on, but its rank can: in another one."""
        self._chore.stop()
        try:
            if self._rank == 0:
                self._see(self._pods())
                self._renew_launcher()
            else:
                self._reached().delete_pod(self._machine, self._uid)
        except OSError as error:  # whoever looks next does it
            say(f"could not have this pod replaced: {error}")

    def _pause(self, stopping: threading.Event) -> None:
        stopping.wait(min(_LOOK_EVERY + self._rank, _LOOK_AT_LEAST_EVERY))

    def _look(self) -> None:
        pods = self._pods()
        for pod in pods:
            if _role(pod) == "worker" and _is_lost(pod):
                metadata = pod["metadata"]
                say(f"deleting pod {metadata['name']}, which is lost")
                self._reached().delete_pod(metadata["name"], metadata["uid"], grace=0)
        launchers = self._see(pods)
        if self._rank and all(_is_lost(pod) for pod in launchers):
            self._renew_launcher()

    def _pods(self) -> list[dict[str, Any]]:
        return self._reached().pods(f"{_PROGRAM}={self._program}")

    def _see(self, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The launchers among them. The Job that made the newest is remembered; for one that is a
        launcher itself, its own: another one may have come since.
        """
        launchers = [pod for pod in pods if _role(pod) == "launcher"]
        if self._rank == 0:
            launchers = [pod for pod in launchers if pod["metadata"]["uid"] == self._uid]
        launchers.sort(key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
        if launchers:
            owners = launchers[-1]["metadata"].get("ownerReferences") or ()
            self._launching = next((str(o["uid"]) for o in owners if o["kind"] == "Job"), "")
        return launchers

    def _renew_launcher(self) -> None:
        """Without its Job, mpi-operator makes a new one."""
        if self._launching:
            say("deleting the Job of the launcher, so that there is a new one")
            self._reached().delete_job(f"{self._program}-launcher", self._launching)
            self._launching = ""

    def _reached(self) -> Cluster:
        if self._cluster is None:
            self._cluster = self._connect()
        return self._cluster


def _role(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"].get(_ROLE))


def _is_lost(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") == "Failed" or stale(pod)
