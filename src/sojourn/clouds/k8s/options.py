"""What users can choose beyond a task's common fields, and what it is by default."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s.about import ABOUT
from sojourn.core.errors import InvalidInput
from sojourn.core.images import container_image, is_reference, made_image

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = [
    "AGENT_IMAGE",
    "STORAGE_CLASS",
    "TAKEN",
    "Mount",
    "Options",
    "check_names",
    "image_of",
    "options_of",
]

AGENT_IMAGE = "SOJOURN_K8S_AGENT_IMAGE"
STORAGE_CLASS = "SOJOURN_K8S_STORAGE_CLASS"
_DEFAULT_AGENT = "python:3.13-slim"
_IMAGES = {"ubuntu": "ubuntu:24.04", "nvidia": "nvidia/cuda:12.6.3-runtime-ubuntu24.04"}
_KNOWN = tuple(name for name, _ in ABOUT.options)
_DEFAULT_DISK = 10  # GB
TAKEN = ("", "dev", "proc", "sojourn", "sys")  # folders that mounts cannot be in
_CLAIM = re.compile(
    r"claim:(?P<name>[a-z0-9][a-z0-9.-]*)(/(?P<path>[^:]*))?(?P<readonly>:ro)?", re.ASCII
)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
_NFS = re.compile(r"nfs:(?P<server>[^:/]+):(?P<path>/[^:]*)(?P<readonly>:ro)?")


@dataclass(frozen=True)
class Mount:
    """Data that is there already: a claim or an NFS export, at a path of the script's container."""

    at: str
    volume: dict[str, Any]
    path: str  # in the volume
    readonly: bool


@dataclass(frozen=True)
class Options:
    """All of them, read and checked."""

    agent_image: str
    storage_class: str  # empty: the cluster's default
    pod: dict[str, Any]  # a patch of the pod template
    mounts: tuple[Mount, ...]
    disk: int  # GB of the claim
    queue: str = ""  # of Volcano; empty: none


def image_of(task: Task) -> str:
    """The image of the script's container. With `docker://`, a name is never one of ours."""
    if made_image(task.image):
        raise InvalidInput(
            "image",
            f"{task.image!r} is a machine image, and Kubernetes runs containers: use a container "
            "image such as python:3.12",
        )
    return container_image(task.image) or _IMAGES.get(task.image, task.image)


def check_names(task: Task) -> None:
    """Refuse what cannot be the name of an image, an account, a class or a queue.

    Apart from reading them, as a task that exists may have such a name.
    """
    for field, image in (
        ("image", image_of(task)),
        ("options.agent_image", options_of(task).agent_image),
    ):
        if not is_reference(image):
            raise InvalidInput(
                field, f"must be the name of a container image, such as python:3.12, got {image!r}"
            )
    for field, name, what in (
        ("permission_set", task.permission_set or None, "a service account"),
        ("options.storage_class", options_of(task).storage_class or None, "a storage class"),
        ("options.queue", task.options.get("queue"), "a queue of Volcano"),
    ):
        if name is not None and not _NAME.fullmatch(name):
            raise InvalidInput(
                field,
                f"must be the name of {what}, of lower-case letters, digits, dashes and dots, "
                f"got {name!r}",
            )


def options_of(task: Task) -> Options:
    """Read them; refuses what cannot be."""
    for name in task.options:
        if name not in _KNOWN:
            raise InvalidInput(
                f"options.{name}", f"unknown option; must be one of {', '.join(_KNOWN)}"
            )
    return Options(
        agent_image=task.options.get("agent_image")
        or os.environ.get(AGENT_IMAGE)
        or _DEFAULT_AGENT,
        storage_class=task.options.get("storage_class") or os.environ.get(STORAGE_CLASS, ""),
        pod=_patch(task.options.get("pod", "")),
        mounts=_mounts(task),
        queue=task.options.get("queue", ""),
        disk=task.disk_size if task.disk_size > 0 else _DEFAULT_DISK,
    )


def _patch(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    import yaml  # only for those who use it

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidInput("options.pod", f"is not valid YAML: {error}") from error
    if not isinstance(found, dict) or set(found) - {"metadata", "spec"}:
        raise InvalidInput("options.pod", "must be a pod template with metadata and spec alone")
    for name, part in found.items():
        if not isinstance(part, dict):
            raise InvalidInput("options.pod", f"{name} must be a map")
    return found


def _mounts(task: Task) -> tuple[Mount, ...]:
    mounts = tuple(_mount(at, what) for at, what in sorted(task.mounts.items()))
    paths = [mount.at for mount in mounts]
    for path in paths:
        if paths.count(path) > 1:
            raise InvalidInput("mounts", f"must have one mount at {path}")
    return mounts


def _mount(at: str, what: str) -> Mount:
    path = PurePosixPath("/" + at.lstrip("/"))  # `//data` is another path for Python
    top = path.parts[1] if len(path.parts) > 1 else ""
    if not at.startswith("/") or ".." in path.parts or ":" in at or top in TAKEN:
        raise InvalidInput("mounts", f"must be at an absolute path of its own, got {at!r}")
    claim, nfs = _CLAIM.fullmatch(what), _NFS.fullmatch(what)
    if claim:
        inside = (claim["path"] or "").strip("/")
        if ".." in inside.split("/"):
            raise InvalidInput("mounts", f"must be a path without `..`, got {what!r}")
        volume: dict[str, Any] = {"persistentVolumeClaim": {"claimName": claim["name"]}}
        return Mount(str(path), volume, inside, bool(claim["readonly"]))
    if nfs:
        volume = {"nfs": {"server": nfs["server"], "path": nfs["path"]}}
        return Mount(str(path), volume, "", bool(nfs["readonly"]))
    raise InvalidInput(
        "mounts", f"must be claim:NAME[/path][:ro] or nfs:SERVER:/path[:ro], got {what!r}"
    )
