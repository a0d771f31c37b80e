"""The Jobs of a task: Kubernetes keeps a pod of each rank alive until it has ended."""

from __future__ import annotations

from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.jobs import ended, rank_of, suspended
from sojourn.clouds.k8s.on_machine import places
from sojourn.clouds.k8s.on_machine.pods import stale
from sojourn.clouds.k8s.reasons import job_obstacle, waiting, when
from sojourn.clouds.k8s.resources import gone
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError
from sojourn.core.events import CloudEvent
from sojourn.core.interfaces import Fleet, Member
from sojourn.core.parallel import together
from sojourn.kube.websocket import execute
from sojourn.storage import layout
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from sojourn.clouds.k8s.objects import TaskObjects
    from sojourn.core.context import Context
    from sojourn.core.interfaces import KeyPair
    from sojourn.kube.api import Object

__all__ = ["KubernetesScaler", "fleet_of", "is_machine"]

_UPLOADED = "sojourn/uploaded"  # an annotation of the Secret
_SHOWN = 200  # events, the newest


class KubernetesScaler:
    """A Job a rank. Suspended ones have no pods."""

    stage = 2

    def __init__(self, objects: TaskObjects) -> None:
        self._objects = objects
        self._api = objects.api
        self._complete = False

    @property
    def title(self) -> str:
        return f"Job {self._objects.name}"

    def read(self, ctx: Context) -> bool:
        """Jobs that wait for an upload are not yet what they will be."""
        return bool(self._objects.jobs()) and self._is_complete()

    def _is_complete(self) -> bool:
        """Whether nothing is left to upload, as far as anybody knows."""
        if self._complete:
            return True
        try:
            self._complete = not self._objects.holds or self._is_uploaded()
        except NotFound:
            return True  # all but the Jobs is gone
        return self._complete

    def _is_uploaded(self) -> bool:
        secret = self._api.get("Secret", self._objects.name)
        return bool((secret["metadata"].get("annotations") or {}).get(_UPLOADED))

    def create(self, ctx: Context) -> None:
        """The first machine comes at once if the upload goes through it, and waits for that."""
        there = {rank_of(job) for job in self._objects.jobs()}
        missing = [r for r in range(self._objects.task.parallelism) if r not in there]
        together(
            [
                partial(self._make, rank, suspend=bool(rank) or not self._objects.holds)
                for rank in missing
            ]
        )

    def _make(self, rank: int, *, suspend: bool, again: bool = False) -> None:
        with suppress(Conflict):
            self._api.create("Job", self._objects.job(rank, suspend=suspend, again=again))

    def delete(self, ctx: Context) -> None:
        """With all pods; what they had to store is stored, or not wanted.

        Nobody waits for the nodes to tell that their containers have ended: one that is lost
        never does.
        """
        for job in self._objects.jobs():
            self._api.delete("Job", job["metadata"]["name"])
        for pod in self._objects.pods():
            self._api.delete("Pod", pod["metadata"]["name"], grace=0)
        gone(ctx, self._all_gone, self.title)

    def _all_gone(self) -> bool:
        return not self._objects.jobs() and not [p for p in self._objects.pods() if not stale(p)]

    def scale(self, ctx: Context, machines: int) -> None:
        jobs = self._objects.jobs()
        if not jobs:
            raise NotFound(f"No {self.title} found")
        if not machines:
            together([partial(self._suspend, job, True) for job in jobs if not ended(job)])
            return
        self._finish_upload()
        with suppress(SojournError):
            self._api.delete("Pod", names.store_pod(self._objects.id), grace=0)
        live = [job for job in jobs if not ended(job)]
        if len(live) < machines:
            self._renew(ctx, jobs)
        live.sort(key=lambda job: (suspended(job), rank_of(job)))  # those at work go on
        wanted, others = live[:machines], live[machines:]
        changes = [partial(self._suspend, job, False) for job in wanted if suspended(job)]
        changes += [partial(self._suspend, job, True) for job in others if not suspended(job)]
        together(changes)

    def _suspend(self, job: Object, value: bool) -> None:
        self._api.merge("Job", job["metadata"]["name"], {"spec": {"suspend": value}})

    def _finish_upload(self) -> None:
        """Let machines begin that wait for the upload; told in the Secret, so that it is not asked
        for again."""
        if not self._objects.holds or self._is_uploaded():
            return
        self._objects.store().put(layout.UPLOADED, b"")
        done = {"metadata": {"annotations": {_UPLOADED: "yes"}}}
        self._api.merge("Secret", self._objects.name, done)

    def _renew(self, ctx: Context, jobs: list[Object]) -> None:
        """Make Jobs anew that have ended though their ranks have not."""
        objects = self._objects
        records = StoreData(objects.store).records(ctx, objects.task.parallelism)
        by_rank = {rank_of(job): job for job in jobs}
        for record in records:
            job = by_rank.get(record.rank)
            if record.ended or (job and not ended(job)):
                continue
            if job:
                self._api.delete("Job", job["metadata"]["name"])
                name = job["metadata"]["name"]
                gone(ctx, partial(self._is_absent, name), f"Job {name}")
            self._make(record.rank, suspend=False, again=True)

    def _is_absent(self, name: str) -> bool:
        return name not in [job["metadata"]["name"] for job in self._objects.jobs()]

    def fleet(self, ctx: Context) -> Fleet | None:
        jobs = self._objects.jobs()
        if not jobs or not self._is_complete():
            return None
        wanted = sum(not suspended(job) and not ended(job) for job in jobs)
        return fleet_of(self._objects, wanted, stuck=any(_failed(job) for job in jobs))

    def events(self, ctx: Context) -> list[CloudEvent]:
        """What the cluster says of anything that is named after the task."""
        try:
            found = self._api.list("Event")
        except AuthError:
            return []
        ours = [e for e in found if str(e["involvedObject"]["name"]).startswith(self._objects.name)]
        ours.sort(key=when)
        return [
            CloudEvent(
                when(event)[:19] + "Z",
                event["reason"],
                f"{event['involvedObject']['kind']} {event['involvedObject']['name']}: "
                f"{event.get('message', '')}",
            )
            for event in ours[-_SHOWN:]
        ]

    def obstacle(self, ctx: Context) -> str:
        for pod in self._objects.pods(role=names.MACHINES):
            if why := waiting(self._api, pod):
                return why
        for job in self._objects.jobs():
            if not suspended(job) and (why := job_obstacle(self._api, job)):
                return why
        return ""

    def keys(self, ctx: Context) -> KeyPair | None:
        return None

    def console(self, ctx: Context, machine: str) -> str:
        return ""  # it has none

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        self._api.get("Pod", machine)
        if not notice:
            self._kill(machine)
        self._api.delete("Pod", machine, grace=None if notice else 0)

    def _kill(self, machine: str) -> None:
        """Without grace, a pod still has two seconds or so: enough for a last snapshot."""
        with suppress(SojournError):
            command = ["/bin/sh", "-c", "kill -KILL -1"]
            killing = execute(self._api, machine, names.AGENT, command, stdin=False)
            with closing(killing):
                killing.wait()


def fleet_of(objects: TaskObjects, wanted: int, *, stuck: bool) -> Fleet:
    """The machines of a task at this moment."""
    pods = [pod for pod in objects.pods(role=names.MACHINES) if is_machine(pod)]
    if pods and objects.door.is_open:
        left = _left(objects)
        pods = [pod for pod in pods if places.left(pod["metadata"]["name"]) not in left]
    return Fleet(wanted, tuple(_machine(pod) for pod in pods), stuck=stuck)


def _left(objects: TaskObjects) -> set[str]:
    """What machines left behind that only serve the store; a look at the store costs little."""
    with suppress(SojournError):
        return {item.path for item in objects.store().list(layout.MACHINES)}
    return set()


def is_machine(pod: Object) -> bool:
    """Whether a pod is a machine: all of its containers came, and its script may still run.

    Until then, it waits for a node, a volume or an image, and `obstacle` says for which.
    """
    status = pod["status"]
    if status.get("phase") != "Running":
        return False
    # The agent's end counts, and not the script's: it may still store the results.
    over = any(
        item["name"] == names.AGENT and "terminated" in item["state"]
        for item in status.get("containerStatuses") or ()
    )
    return not over and not stale(pod)


def _failed(job: Object) -> bool:
    conditions = job.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Failed" and c["status"] == "True" for c in conditions)


def _machine(pod: Object) -> Member:
    status = pod["status"]
    return Member(pod["metadata"]["name"], status.get("podIP", ""), status.get("startTime", ""))
