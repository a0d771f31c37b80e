"""What users can choose of machines beyond a task's common fields, on every cloud of this kind."""

from __future__ import annotations

import ipaddress
import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.images import PREFIX, container_image

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sojourn.core.task import Task

__all__ = [
    "ANYWHERE",
    "Network",
    "check_options",
    "machine_image",
    "naming_vm_image",
    "network_of",
    "ssh_from",
]

ANYWHERE = ("0.0.0.0/0",)
_NOBODY = "none"
_PRIVATE = "private"
_PLAIN, _WITH_DRIVER = "ubuntu", "nvidia"  # names that all clouds have
_VM_IMAGE = "options.vm_image"
_KEY = re.compile(r"(ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]{16,}={0,2}( [^\n\r]*)?")


@dataclass(frozen=True)
class Network:
    """What a user gave as `network`: the cloud's names of it, and whether machines have public
    addresses. None of both: the cloud's default."""

    parts: tuple[str, ...] = ()
    private: bool = False

    @property
    def name(self) -> str:
        return ",".join(self.parts)


def check_options(task: Task, cloud: str, own: Sequence[str] = ()) -> None:
    """Refuse what is not known: nothing is ignored in silence. `own`: what only this cloud has."""
    known = [*(name for name, _ in OPTIONS), *own]
    problems = [Problem("mounts", f"not supported by {cloud}")] if task.mounts else []
    problems += [
        Problem(f"options.{name}", f"unknown option; must be one of {', '.join(known)}")
        for name in task.options
        if name not in known
    ]
    if problems:
        raise InvalidInput.of(problems)
    ssh_from(task)
    network_of(task)
    _check_images(task)
    _check_key(task.options.get("ssh_key", ""))


def _check_key(key: str) -> None:
    """It becomes a line of a file on machines."""
    if key and not _KEY.fullmatch(key.strip()):
        raise InvalidInput(
            "options.ssh_key", "must be one public SSH key, such as ssh-ed25519 AAAA..."
        )


def _check_images(task: Task) -> None:
    below = task.options.get("vm_image", "")
    if not container_image(task.image):
        if below:
            raise InvalidInput(
                _VM_IMAGE, f"requires a container image: set image to {PREFIX}NAME, or remove it"
            )
    elif below.startswith(PREFIX):
        raise InvalidInput(_VM_IMAGE, f"must be a machine image, got {below!r}")


def machine_image(task: Task, *, gpus: bool) -> str:
    """The image that machines boot from. `gpus`: they have some of NVIDIA's."""
    if not container_image(task.image):
        return task.image
    return task.options.get("vm_image") or (_WITH_DRIVER if gpus else _PLAIN)


@contextmanager
def naming_vm_image(task: Task) -> Iterator[None]:
    """Where the image is a container's, what is wrong with the machine's is its option's fault."""
    try:
        yield
    except InvalidInput as error:
        if error.path != "image" or not container_image(task.image):
            raise
        message = error.problems[0].message
        raise InvalidInput(_VM_IMAGE, message, *error.problems[1:]) from error


def ssh_from(task: Task) -> tuple[str, ...]:
    """The networks that may connect to machines by SSH; empty: none."""
    given = task.options.get("ssh_from", "").strip()
    if not given:
        return ANYWHERE
    if given == _NOBODY:
        return ()
    return tuple(dict.fromkeys(_network(part.strip()) for part in given.split(",")))


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        raise InvalidInput(
            "options.ssh_from",
            f"must be networks such as 203.0.113.0/24, separated by commas, or none: {error}",
        ) from error


def network_of(task: Task) -> Network:
    """The network that the user chose."""
    given = [part.strip() for part in task.options.get("network", "").split(",")]
    parts = tuple(part for part in given if part and part != _PRIVATE)
    if task.options.get("network") and not parts:
        raise InvalidInput("options.network", "must name a network; `private` alone is not enough")
    return Network(parts, _PRIVATE in given)
