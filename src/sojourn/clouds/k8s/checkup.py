"""What `sojourn doctor` finds out of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.k8s.machines import GPU
from sojourn.clouds.k8s.operator import KubernetesMpiOperator
from sojourn.clouds.k8s.rights import missing, who
from sojourn.clouds.k8s.roles import NEEDED
from sojourn.clouds.k8s.storageclasses import default_class
from sojourn.core.context import Context
from sojourn.core.errors import AuthError, SojournError
from sojourn.core.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.kube.api import Api

__all__ = ["look"]


def look(api: Api) -> Iterator[Finding]:
    """Which cluster, who we are, what we may do, and what there is."""
    try:
        login = api.login
        version = api.version()
    except SojournError as error:
        yield Finding.failed("kubernetes", error)
        return
    yield Finding(
        "ok",
        "kubernetes",
        f"{login.cluster.server}, Kubernetes {version[0]}.{version[1]}, "
        f"context {login.context} from {login.source}",
    )
    yield _who(api)
    yield _rights(api)
    yield _classes(api)
    yield _gpus(api)
    yield _operator(api)


def _who(api: Api) -> Finding:
    return Finding("ok", "kubernetes namespace", f"{api.namespace}, as {who(api)}")


def _rights(api: Api) -> Finding:
    lacking = missing(api, NEEDED)
    if not lacking:
        return Finding("ok", "kubernetes permissions", "all that tasks need")
    return Finding(
        "note",
        "kubernetes permissions",
        f"missing in namespace {api.namespace}: {', '.join(lacking)}; "
        "run `sojourn doctor --role k8s` for a role to ask for",
    )


def _classes(api: Api) -> Finding:
    try:
        classes = api.list("StorageClass")
    except AuthError:
        return Finding("ok", "kubernetes storage", "not allowed to list storage classes")
    except SojournError as error:
        return Finding("note", "kubernetes storage", error.message)
    default = default_class(classes)
    names = ", ".join(sorted(c["metadata"]["name"] for c in classes)) or "none"
    if default is None:
        return Finding(
            "note",
            "kubernetes storage",
            f"no default storage class (available: {names}); "
            "set options.storage_class or storage.container in each task",
        )
    text = f"default storage class {default['metadata']['name']} (available: {names})"
    return Finding("ok", "kubernetes storage", text)


def _gpus(api: Api) -> Finding:
    try:
        nodes = api.list("Node")
    except SojournError:
        return Finding("ok", "kubernetes nodes", "not allowed to list nodes")
    gpus = sum(int(node["status"].get("allocatable", {}).get(GPU, 0)) for node in nodes)
    text = f"{len(nodes)} nodes, {gpus} GPUs" if gpus else f"{len(nodes)} nodes, no GPUs"
    return Finding("ok", "kubernetes nodes", text)


def _operator(api: Api) -> Finding:
    subject = "kubernetes mpi"
    try:
        found = KubernetesMpiOperator(api).look(Context())
    except SojournError as error:
        return Finding.failed(subject, error)
    if found is None:
        text = "mpi-operator not installed (optional); run `sojourn mpi install` for MPI tasks"
        return Finding("ok", subject, text)
    if found.ready or not found.namespace:
        return Finding("ok", subject, str(found))
    return Finding("note", subject, f"{found} is not ready; run `sojourn mpi status`")
