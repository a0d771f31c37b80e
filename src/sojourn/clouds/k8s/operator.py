"""Installs mpi-operator in a cluster, finds one that is there, and removes ours."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.clouds.k8s.names import OURS
from sojourn.clouds.k8s.operator_manifest import (
    CRD,
    DEPLOYMENT,
    NAME,
    WHERE,
    cluster_objects,
    crd,
    inner_objects,
    namespace_object,
)
from sojourn.clouds.k8s.rights import missing, who
from sojourn.core.errors import AuthError, Conflict, SojournError, Transient
from sojourn.core.operators import IMAGE, NAMESPACE, Operator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sojourn.core.context import Context
    from sojourn.kube.api import Api, Object

__all__ = ["INSTALLING", "KubernetesMpiOperator"]

_RBAC = "rbac.authorization.k8s.io"
# What it takes to install and remove it, beside the rights of the operator itself.
INSTALLING = (
    ("create get patch delete", "apiextensions.k8s.io", "customresourcedefinitions"),
    ("create get patch delete", "", "namespaces"),
    ("create get patch delete", _RBAC, "clusterroles"),
    ("create get patch delete", _RBAC, "clusterrolebindings"),
    ("create get patch delete", "", "serviceaccounts"),
    ("create get list patch delete", "apps", "deployments"),
    ("delete", "coordination.k8s.io", "leases"),
    ("delete", "kubeflow.org", "mpijobs"),
)
_PAUSE = 0.2
_READY_WITHIN = 180.0  # seconds: an image has to be pulled
_GONE_WITHIN = 180.0
_SHOWN = 10  # jobs in a message
_SIGN = "mpi-operator"  # in the name of its image, whoever installed it
_NOBODYS = ("kube-root-ca.crt",)  # every namespace has it


class KubernetesMpiOperator:
    """The one of a cluster. Constructors do no I/O."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def look(self, ctx: Context) -> Operator | None:
        if not self._api.serves("MPIJob"):
            return None
        ours, namespace = self._ours()
        found = self._deployment(namespace if ours else "")
        if found is None:
            return Operator(namespace=namespace, ours=ours)
        image = _image(found)
        return Operator(
            namespace=str(found["metadata"]["namespace"]),
            image=image,
            version=_version(image),
            ready=_is_ready(found),
            ours=ours,
        )

    def install(self, ctx: Context, namespace: str = "", image: str = "") -> Operator:
        try:
            kind = self._kind()
        except AuthError:
            kind = None
            if self._api.serves("MPIJob"):
                return self._left_alone(ctx, [])
        if kind is not None and not _is_ours(kind):
            return self._left_alone(ctx, kind["spec"]["versions"])
        before = kind["metadata"].get("annotations", {}).get(WHERE, "") if kind else ""
        namespace = namespace or before or NAMESPACE
        if before and before != namespace:
            raise Conflict(
                f"mpi-operator is already installed in namespace {before}",
                hint="Run `sojourn mpi uninstall` first to move it.",
            )
        inside = self._api.inside(namespace)
        self._check_rights(inside)
        image = image or self._copy(inside) or IMAGE
        with ctx.step(f"Installing mpi-operator in namespace {namespace}"):
            self._apply(ctx, inside, namespace, image)
        with ctx.step("Waiting for mpi-operator"):
            self._wait_until_ready(ctx, inside)
        return Operator(namespace, image, _version(image), ready=True, ours=True)

    def uninstall(self, ctx: Context, *, force: bool = False) -> bool:
        kind = self._kind()
        if kind is None:
            return self._remove_rest(ctx)
        if not _is_ours(kind):
            found = self.look(ctx) or Operator()
            raise Conflict(
                f"{found} was not installed by Sojourn",
                hint="Remove it with the tool that installed it.",
            )
        if not force:
            self._check_unused()
        namespace = kind["metadata"].get("annotations", {}).get(WHERE) or NAMESPACE
        with ctx.step(f"Removing mpi-operator from namespace {namespace}"):
            self._remove(ctx.within(_GONE_WITHIN), namespace)
        return True

    def _kind(self) -> Object | None:
        return self._api.find("CustomResourceDefinition", CRD)

    def _ours(self) -> tuple[bool, str]:
        """Whether it is ours, and its namespace; no, of one that we may not look at."""
        with suppress(AuthError):
            kind = self._kind()
            if kind is not None and _is_ours(kind):
                return True, kind["metadata"].get("annotations", {}).get(WHERE, "")
        return False, ""

    def _deployment(self, namespace: str) -> Object | None:
        """Ours, or anybody's that looks like one; None as far as we may see."""
        with suppress(AuthError):
            if namespace:
                return self._api.inside(namespace).find("Deployment", DEPLOYMENT)
            for item in self._api.inside("").list("Deployment"):
                images = [
                    c.get("image", "") for c in item["spec"]["template"]["spec"]["containers"]
                ]
                if any(_SIGN in image for image in images):
                    return item
        return None

    def _copy(self, inside: Api) -> str:
        """The image of ours, if somebody chose it."""
        found = inside.find("Deployment", DEPLOYMENT)
        image = _image(found) if found else ""
        return "" if image.startswith(IMAGE.partition(":")[0]) else image

    def _left_alone(self, ctx: Context, versions: list[Object]) -> Operator:
        found = self.look(ctx)
        if found is None:
            names = ", ".join(each["name"] for each in versions)
            raise Conflict(
                f"The cluster has MPIJobs of another API version: {names}",
                hint="It has an old mpi-operator or Kubeflow's training operator. Tasks need "
                "v2beta1: ask its administrator to upgrade, or use another cluster.",
            )
        ctx.note(f"{found} is already installed; left as it is")
        return found

    def _check_rights(self, inside: Api) -> None:
        """All that is missing at once, and before anything is made."""
        lacking = missing(self._api.inside(""), INSTALLING)
        if lacking:
            raise AuthError(
                f"{who(self._api)} is not allowed to install mpi-operator. "
                f"Missing in the whole cluster: {', '.join(lacking)}",
                hint="Ask an administrator to install it or to give you these rights; "
                "docs/kubernetes.md has the role.",
            )
        for body in cluster_objects(inside.namespace):
            if body["kind"] == "ClusterRole":
                self._api.apply(body["kind"], body, dry_run=True)

    def _apply(self, ctx: Context, inside: Api, namespace: str, image: str) -> None:
        """The kind first: it tells where the rest is, and the operator ends without it."""
        self._api.apply("CustomResourceDefinition", crd(namespace))
        _until(ctx, lambda: self._api.serves("MPIJob"))
        found = self._api.find("Namespace", namespace)
        if found is None or _is_ours(found):
            self._api.apply("Namespace", namespace_object(namespace))
        for body in cluster_objects(namespace):
            ctx.check()
            self._api.apply(body["kind"], body)
        for body in inner_objects(image, namespace):
            ctx.check()
            inside.apply(body["kind"], body)

    def _wait_until_ready(self, ctx: Context, inside: Api) -> None:
        def ready() -> bool:
            found = inside.find("Deployment", DEPLOYMENT)
            return found is not None and _is_ready(found)

        try:
            _until(ctx.within(_READY_WITHIN), ready)
        except Transient as error:
            raise Transient(
                f"mpi-operator is installed but not ready: {_obstacle(inside)}",
                hint="Run `sojourn mpi status` to see if it is ready later. If the cluster cannot "
                "pull the image, run `sojourn mpi install --image IMAGE` with a copy of it.",
            ) from error

    def _check_unused(self) -> None:
        jobs = sorted(f"{namespace}/{name}" for namespace, name in self._jobs())
        if jobs:
            rest = f" and {len(jobs) - _SHOWN} more" if len(jobs) > _SHOWN else ""
            raise Conflict(
                f"mpi-operator is in use by {', '.join(jobs[:_SHOWN])}{rest}",
                hint="Delete these MPIJobs first, or run `sojourn mpi uninstall --force` to "
                "delete them with it.",
            )

    def _jobs(self) -> list[tuple[str, str]]:
        """Namespace and name of each, in the whole cluster."""
        if not self._api.serves("MPIJob"):
            return []
        found = [item["metadata"] for item in self._api.inside("").list("MPIJob")]
        return [(each["namespace"], each["name"]) for each in found]

    def _remove_jobs(self, ctx: Context) -> None:
        """Before their kind: nobody would clean up after jobs of a kind that is gone."""
        for namespace, name in self._jobs():
            ctx.check()
            self._api.inside(namespace).delete("MPIJob", name, owned_first=True)
        _until(ctx, lambda: not self._jobs())

    def _remove_rest(self, ctx: Context) -> bool:
        """What is left if somebody else deleted the kind; the binding tells where it is."""
        binding = self._api.find("ClusterRoleBinding", NAME)
        if binding is None or not _is_ours(binding):
            return False
        self._remove(ctx.within(_GONE_WITHIN), binding["subjects"][0]["namespace"])
        return True

    def _remove(self, ctx: Context, namespace: str) -> None:
        """The kind last: it tells where the rest is."""
        inside = self._api.inside(namespace)
        own = [(inside, each) for each in reversed(inner_objects("", namespace))]
        own += [(self._api, each) for each in cluster_objects(namespace)]
        for api, body in own:
            ctx.check()
            name = body["metadata"]["name"]
            found = api.find(body["kind"], name)
            if found is not None and _is_ours(found):
                api.delete(body["kind"], name)
        # A program that runs would make its lease again.
        _until(ctx, lambda: not inside.list("Pod", f"app.kubernetes.io/name={DEPLOYMENT}"))
        inside.delete("Lease", DEPLOYMENT)
        self._remove_jobs(ctx)
        self._remove_namespace(ctx, inside, namespace)
        self._api.delete("CustomResourceDefinition", CRD)
        _until(ctx, lambda: self._kind() is None)

    def _remove_namespace(self, ctx: Context, inside: Api, name: str) -> None:
        """Only the one that we made, and only if nobody else uses it."""
        found = self._api.find("Namespace", name)
        if found is None or not _is_ours(found):
            return
        used = [
            f"{kind} {item['metadata']['name']}"
            for kind in ("Pod", "ConfigMap", "Secret")
            for item in inside.list(kind)
            if item["metadata"]["name"] not in _NOBODYS
        ]
        if used:
            ctx.warn(f"Keeping namespace {name}, which others use: {', '.join(used[:_SHOWN])}")
            return
        self._api.delete("Namespace", name)
        _until(ctx, lambda: self._api.find("Namespace", name) is None)


def _until(ctx: Context, happened: Callable[[], bool]) -> None:
    while not happened():
        ctx.sleep(_PAUSE)


def _is_ours(item: Object) -> bool:
    key, value = OURS.split("=")
    return bool((item["metadata"].get("labels") or {}).get(key) == value)


def _is_ready(deployment: Object) -> bool:
    """Of what it is told to be now, and not of what it was before."""
    status = deployment.get("status") or {}
    current = status.get("observedGeneration") == deployment["metadata"].get("generation")
    new, old = status.get("updatedReplicas") or 0, status.get("replicas") or 0
    return bool(current and status.get("availableReplicas") and new == old)


def _image(deployment: Object) -> str:
    return str(deployment["spec"]["template"]["spec"]["containers"][0].get("image", ""))


def _version(image: str) -> str:
    """Its tag, if it has one."""
    name, _, digest = image.partition("@")
    return name.rpartition("/")[2].partition(":")[2] or digest


def _obstacle(inside: Api) -> str:
    """What keeps its pod from running."""
    try:
        pods = inside.list("Pod", f"app.kubernetes.io/name={DEPLOYMENT}")
    except SojournError:
        pods = []
    for pod in pods:
        for told in _reasons(pod.get("status") or {}):
            return told
    return "its pod has not started yet"


def _reasons(status: Object) -> Iterable[str]:
    for container in status.get("containerStatuses") or []:
        for state in ("waiting", "terminated"):
            told = (container.get("state") or {}).get(state) or {}
            if told.get("reason") not in (None, "ContainerCreating"):
                yield f"{told['reason']}: {told.get('message', '')}".rstrip(": ")
    for condition in status.get("conditions") or []:
        if condition.get("status") == "False" and condition.get("message"):
            yield str(condition["message"])
