"""What the resources of a task have in common: the cluster, the task, where its store is."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.container import place_of
from sojourn.clouds.k8s.door import Door
from sojourn.clouds.k8s.jobs import ended, has_run, job, may_have_run, suspended
from sojourn.clouds.k8s.machines import SPOT_LABELS
from sojourn.clouds.k8s.mpijob import KIND, given_up, may_have_started, mpijob, paused
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.pod import machine_template, store_template
from sojourn.clouds.k8s.secret import SecretObjects
from sojourn.clouds.k8s.store import TaskStore
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.kube.errors import Rejected
from sojourn.storage.data import load_task

if TYPE_CHECKING:
    from sojourn.clouds.k8s.pod import Place
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.kube.api import Api, Object
    from sojourn.storage.store import Store

__all__ = ["TaskObjects"]


class TaskObjects:
    """One task in a cluster. Constructors do no I/O.

    `given` is None when the task is not known, as when deleting; the Secret has it then.
    """

    def __init__(self, api: Api, id: TaskId, given: Task | None) -> None:
        self.api = api
        self.id = id
        self.given = given
        self.secret = SecretObjects(api, id)
        self._used = False
        self.door = Door(api, id, self.store_pod, self._objects, self.wants_machines)

    @property
    def name(self) -> str:
        return str(self.id)

    @cached_property
    def task(self) -> Task:
        """As it was given, or as the Secret has it. Absent: raises NotFound."""
        return self.given or load_task(TaskStore(self.secret, self._absent, lambda: True))

    @cached_property
    def place(self) -> Place:
        return place_of(self.id, self.task)

    @property
    def has_bucket(self) -> bool:
        """Whether its store is one; of a task that is all but gone, it is not."""
        try:
            return bool(self.place.url)
        except NotFound:
            return False

    @property
    def holds(self) -> bool:
        """Whether the first machine waits for an upload that goes through it."""
        return bool(self.place.claim and self.task.storage.workdir and not self.task.mpi)

    @property
    def folder(self) -> str:
        """Of the task, in the pods that have its claim; empty with a bucket."""
        return str(PurePosixPath(places.VOLUME) / self.place.folder) if self.place.claim else ""

    def _objects(self) -> str:
        return str(PurePosixPath(self.folder) / places.OBJECTS)

    def _absent(self) -> Store:
        raise NotFound(f"Task {self.id} not found")

    def store(self) -> Store:
        """All of it, as laptops see it."""
        return TaskStore(self.secret, self._opened, self._is_used)

    def _is_used(self) -> bool:
        """Whether anything may be in the store: who asks it waits for a pod that has it."""
        if not self._used:
            self._used = (
                bool(self.place.url)
                or self.door.is_open
                or (self._is_bound() and self._may_have_run())
            )
        return self._used

    def _is_bound(self) -> bool:
        """No container starts before its claim is bound; some are bound before any pod comes."""
        claim = self.api.find("PersistentVolumeClaim", self.place.claim)
        return claim is not None and claim.get("status", {}).get("phase") != "Pending"

    def _may_have_run(self) -> bool:
        """Of the pods of a Job that is gone, nobody tells."""
        if self.task.mpi:
            found = self.mpijob_found()
            return found is None or may_have_started(found) or any(map(has_run, self.pods()))
        jobs = self.jobs()
        if len(jobs) < self.task.parallelism or any(map(may_have_run, jobs)):
            return True
        return any(map(has_run, self.pods()))

    @cached_property
    def bucket(self) -> Store:
        from sojourn.storage.store import StoreAddress, open_store

        options = json.loads(bytes(self.secret.get(places.STORE_OPTIONS)))
        return open_store(StoreAddress(self.place.url, options))

    def _opened(self) -> Store:
        return self.bucket if self.place.url else self.door.store()

    @cached_property
    def spot(self) -> bool:
        """Whether to choose nodes that are marked as spot: not if none are."""
        return self.task.spot >= 0 and self.marked_spot() is True

    def marked_spot(self) -> bool | None:
        """Whether any node is marked as spot; None: we may not know."""
        try:
            nodes = self.api.list("Node")
        except AuthError:
            return None
        labels = [node["metadata"].get("labels") or {} for node in nodes]
        return any(found.get(key) == value for found in labels for key, value in SPOT_LABELS)

    @cached_property
    def restricted(self) -> bool:
        """Whether the namespace takes pods only if nothing in them runs as root."""
        if self._accepts(restricted=False):
            return False
        if self._accepts(restricted=True):
            return True
        raise InvalidInput("cloud", "the cluster accepts no such pod")  # pragma: no cover

    def _accepts(self, *, restricted: bool) -> bool:
        """Ask for a pod without making it; quotas and accounts are looked at, too."""
        template = machine_template(
            self.id, self.task, 0, self.place, spot=self.spot, restricted=restricted
        )
        body = {"apiVersion": "v1", "kind": "Pod", **template}
        body["metadata"] = {**template["metadata"], "name": f"{self.id}-try"}
        if body["spec"].get("serviceAccountName") == self.name:  # made later, for an MPI program
            del body["spec"]["serviceAccountName"]
        try:
            self.api.create("Pod", body, dry_run=True)
        except Rejected as error:
            if restricted or not error.level:
                raise InvalidInput("options.pod", error.message) from error
            return False
        return True

    def job(self, rank: int, *, suspend: bool, again: bool = False) -> Object:
        return job(
            self.id,
            self.task,
            rank,
            self.place,
            suspend=suspend,
            spot=self.spot,
            restricted=self.restricted,
            again=again,
        )

    def mpijob(self, *, suspend: bool) -> Object:
        return mpijob(
            self.id,
            self.task,
            self.place,
            suspend=suspend,
            spot=self.spot,
            restricted=self.restricted,
        )

    def mpijob_found(self) -> Object | None:
        return self.api.find(KIND, self.name)

    def wants_machines(self) -> bool:
        """Whether any are to come."""
        if self.task.mpi:
            found = self.mpijob_found()
            return found is not None and not paused(found) and not given_up(found)
        return any(not suspended(job) and not ended(job) for job in self.jobs())

    def store_pod(self) -> Object:
        """Made when no machine has the store. There is none: raises NotFound."""
        needed = {"PersistentVolumeClaim": self.place.claim, "ConfigMap": self.name}
        for kind, name in needed.items():
            if self.api.find(kind, name) is None:
                raise NotFound(f"Store of {self.id} not found: no {kind} {name}")
        template = store_template(
            self.id, self.task, self.place, spot=self.spot, restricted=self.restricted
        )
        return {"apiVersion": "v1", "kind": "Pod", **template}

    def jobs(self) -> list[Object]:
        """Of all ranks, those that there are."""
        return self.api.list("Job", names.of_task(self.id))

    def pods(self, **labels: str) -> list[Object]:
        return self.api.list("Pod", names.of_task(self.id, **labels))
