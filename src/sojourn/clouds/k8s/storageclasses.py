"""Whether a cluster's storage can hold a store; told before anything is made, if it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import AuthError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.task import Task
    from sojourn.kube.api import Api, Object

__all__ = ["check", "default_class"]

_DEFAULT = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
# Disks, which one node at a time can have.
_ONE_NODE = (
    "disk.csi.azure.com",
    "disk.csi.cloud.com",
    "dobs.csi.digitalocean.com",
    "ebs.csi.aws.com",
    "kubernetes.io/aws-ebs",
    "kubernetes.io/azure-disk",
    "kubernetes.io/gce-pd",
    "kubernetes.io/no-provisioner",
    "linode.csi.linode.com",
    "csi.hetzner.cloud",
    "pd.csi.storage.gke.io",
    "rancher.io/local-path",
    "topolvm.io",
)
_SHARED = (
    "set options.storage_class to a class with ReadWriteMany, or storage.container to a bucket"
)


def check(api: Api, task: Task, name: str) -> Iterator[str]:
    """Refuse a class that is not there or cannot be shared by machines; yields notes."""
    try:
        classes = api.list("StorageClass")
    except AuthError:
        return
    found = next((c for c in classes if c["metadata"]["name"] == name), None)
    if name and found is None:
        known = ", ".join(sorted(c["metadata"]["name"] for c in classes)) or "none"
        raise InvalidInput(
            "options.storage_class", f"storage class {name!r} not found (available: {known})"
        )
    found = found or default_class(classes)
    if found is None:
        raise InvalidInput(
            "options.storage_class",
            "required: the cluster has no default storage class; or set storage.container",
        )
    if task.parallelism > 1 and found["provisioner"] in _ONE_NODE:
        raise InvalidInput(
            "parallelism",
            f"storage class {found['metadata']['name']} ({found['provisioner']}) cannot be shared "
            f"by {task.parallelism} machines: {_SHARED}",
        )
    yield from ()


def default_class(classes: list[Object]) -> Object | None:
    """Where claims without a class go; of several, the newest."""
    marked = [
        c
        for c in classes
        if "true" in [(c["metadata"].get("annotations") or {}).get(name) for name in _DEFAULT]
    ]
    return max(marked, key=lambda c: str(c["metadata"]["creationTimestamp"]), default=None)
