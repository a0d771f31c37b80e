"""Kubernetes as a list of resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s import names
from sojourn.clouds.k8s.container import is_bucket, overlap, place_of
from sojourn.clouds.k8s.files import check as check_files
from sojourn.clouds.k8s.machines import node_selector, parse_machine
from sojourn.clouds.k8s.options import check_names, options_of
from sojourn.clouds.k8s.roles import check_rights
from sojourn.clouds.k8s.secret import check_size
from sojourn.core.errors import AuthError, Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.gang import absolute
from sojourn.core.ids import TaskId
from sojourn.core.interfaces import Data, Features, Reach, Resource, Scaler
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import Asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sojourn.clouds.k8s.objects import TaskObjects
    from sojourn.clouds.k8s.pod import Place
    from sojourn.core.context import Context
    from sojourn.core.status import Status
    from sojourn.core.task import Task

__all__ = ["KubernetesCloud"]

_OLDEST = (1, 31)  # whose Jobs can succeed before all of their indexes have
_TRIAL = TaskId.deterministic("trial")


def _check_bucket(place: Place, task: Task) -> None:
    """Ask it for something: its name, its options and the credentials are then right."""
    from sojourn.storage.store import StoreAddress, open_store

    try:
        open_store(StoreAddress(place.url, task.storage.container_opts)).list("any")
    except NotFound as error:
        raise InvalidInput(
            "storage.container", f"{task.storage.container} not found; create the bucket first"
        ) from error
    except AuthError as error:
        raise InvalidInput(
            "storage.container_opts", f"access to {task.storage.container} denied: {error.message}"
        ) from error


class KubernetesCloud:
    """Tasks in a namespace of the user's cluster."""

    features = Features(
        mpi=("openmpi", "intel", "mpich"),
        private_machines=True,
        poll=0.3,
        upload_through_machines=True,
        instead_of_images="Build a container image, and use it as image docker://NAME.",
    )

    def __init__(self, asked: Asked | None = None, name: str = "k8s") -> None:
        self.name = name
        self._api = Api((asked or Asked()).login)
        self._known: dict[TaskId, TaskObjects] = {}

    def address(self) -> str:
        try:
            return f"{self._api.login.cluster.server} {self._api.namespace}"
        except SojournError:
            return ""

    def check_form(self, task: Task) -> None:
        parse_machine(task.machine)
        node_selector(task.region)
        options_of(task)
        check_files(task)
        check_names(task)
        place_of(_TRIAL, task)
        check_size(task)

    def check(self, ctx: Context, task: Task) -> Iterable[str]:
        self.check_form(task)
        place = place_of(_TRIAL, task)
        self._check_version()
        check_rights(self._api, task)
        if task.mpi:
            self._check_operator()
        if "queue" in task.options:
            self._check_queues()
        objects = self._objects(_TRIAL, task)
        self._known.pop(_TRIAL)
        if place.claim and task.storage.container:
            self._check_claim(place, task)
        if place.claim and not task.storage.container:
            yield from self._check_class(task)
        if place.url:
            _check_bucket(place, task)
        _ = objects.restricted  # asks whether such a pod is welcome
        if task.spot > 0:
            yield "Ignoring the spot price: Kubernetes has none"
        if task.spot >= 0 and not objects.spot:
            yield "No node is marked as spot, as far as can be seen; running on any node"

    def _check_version(self) -> None:
        found = self._api.version()
        if found < _OLDEST:
            raise InvalidInput(
                "cloud",
                f"requires Kubernetes {_OLDEST[0]}.{_OLDEST[1]} or later, "
                f"got {found[0]}.{found[1]}",
            )

    def _check_operator(self) -> None:
        from sojourn.clouds.k8s.mpijob import KIND

        if not self._api.serves(KIND):
            raise InvalidInput(
                "mpi",
                "the cluster has no mpi-operator, which makes the machines of MPI programs: run "
                "`sojourn mpi install`, or ask whoever runs the cluster to",
            )

    def _check_queues(self) -> None:
        from sojourn.clouds.k8s.queues import check_queues

        check_queues(self._api)

    def _check_claim(self, place: Place, task: Task) -> None:
        if self._api.find("PersistentVolumeClaim", place.claim) is None:
            raise InvalidInput(
                "storage.container",
                f"claim {place.claim} not found in namespace {self._api.namespace}; "
                "create it first",
            )
        own = str(TaskId.deterministic(task.name)) if task.name else ""
        for secret in self._api.list("Secret", names.OURS):
            other = TaskId.parse(secret["metadata"]["name"])
            found = self._place(other)
            if str(other) != own and found and overlap(found, place):
                folder = f"in its folder {found.folder}" if found.folder else "in all of the claim"
                raise Conflict(
                    f"The container overlaps with that of the task {other}, {folder}",
                    hint="Set storage.container to a path beside it.",
                )

    def _place(self, id: TaskId) -> Place | None:
        """None of a task that is not complete: it has no folder yet."""
        try:
            return self._objects(id, None).place
        except SojournError:
            return None

    def _check_class(self, task: Task) -> Iterator[str]:
        from sojourn.clouds.k8s.storageclasses import check

        yield from check(self._api, task, options_of(task).storage_class)

    def resources(self, id: TaskId, task: Task | None) -> Sequence[Resource]:
        from sojourn.clouds.k8s import resources
        from sojourn.clouds.k8s.program import AgentProgram

        objects = self._objects(id, task)
        container = task.storage.container if task else self._container(objects)
        store: list[Resource] = []
        if not container:
            store = [resources.Claim(objects)]
        elif not is_bucket(container):
            store = [resources.ClaimFolder(objects)]
        else:
            store = [resources.BucketFolder(objects)]
        return (
            resources.TaskSecret(objects),
            AgentProgram(objects),
            *([resources.FilesMap(objects)] if self._has_files(objects) else []),
            *store,
            *self._of_gang(objects),
            self._scaler(objects),
        )

    def _container(self, objects: TaskObjects) -> str:
        try:
            return objects.task.storage.container
        except NotFound:
            return ""

    def _of_gang(self, objects: TaskObjects) -> list[Resource]:
        from sojourn.clouds.k8s.account import AgentAccount
        from sojourn.clouds.k8s.gangs import GangPolicy, GangService
        from sojourn.clouds.k8s.queues import QueueGroup

        try:
            task = objects.task
        except NotFound:
            return []  # without a task, nothing was made for a gang
        if not task.gang:
            return []
        # The service of an MPI program is mpi-operator's.
        made: list[Resource] = [GangPolicy(objects)]
        made += [AgentAccount(objects) if task.mpi else GangService(objects)]
        return [*made, QueueGroup(objects)] if "queue" in task.options else made

    def _has_files(self, objects: TaskObjects) -> bool:
        try:
            return bool(absolute(objects.task.files))
        except NotFound:
            return False  # without a task, nothing else was made

    def scaler(self, id: TaskId) -> Scaler:
        return self._scaler(self._objects(id, None))

    def _scaler(self, objects: TaskObjects) -> Scaler:
        from sojourn.clouds.k8s.mpiscaler import MpiScaler
        from sojourn.clouds.k8s.scaler import KubernetesScaler

        return MpiScaler(objects) if _has_mpi(objects) else KubernetesScaler(objects)

    def data(self, id: TaskId) -> Data:
        from sojourn.clouds.k8s.data import KubernetesData

        return KubernetesData(self._objects(id, None))

    def reach(self, id: TaskId, machine: str) -> Reach:
        from sojourn.clouds.k8s.reach import KubernetesReach

        return KubernetesReach(self._api, machine)

    def images(self) -> None:
        return None

    def tasks(self, ctx: Context) -> Iterator[TaskId]:
        found = set()
        for kind in ("Secret", "Job"):
            for item in self._api.list(kind, names.OURS):
                found.add(TaskId.parse(item["metadata"]["labels"][names.ID]))
        yield from sorted(found)

    def states(self, ctx: Context, ids: Sequence[TaskId]) -> dict[TaskId, Status]:
        from sojourn.clouds.k8s.listing import states

        return states(self._api, ids) if ids else {}

    def _objects(self, id: TaskId, task: Task | None) -> TaskObjects:
        from sojourn.clouds.k8s.objects import TaskObjects

        known = self._known.get(id)
        if known is None or (task is not None and known.given is not task):
            known = self._known[id] = TaskObjects(self._api, id, task)
        return known


def _has_mpi(objects: TaskObjects) -> bool:
    try:
        return objects.task.mpi is not None
    except NotFound:
        return False
