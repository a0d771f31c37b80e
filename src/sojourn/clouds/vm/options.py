"""What users can choose of machines beyond a task's common fields, on every cloud of this kind."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["ANYWHERE", "Network", "check_options", "network_of", "ssh_from"]

ANYWHERE = ("0.0.0.0/0",)
_NOBODY = "none"
_PRIVATE = "private"


@dataclass(frozen=True)
class Network:
    """What a user gave as `network`: the cloud's names of it, and whether machines have public
    addresses. None of both: the cloud's default."""

    parts: tuple[str, ...] = ()
    private: bool = False

    @property
    def name(self) -> str:
        return ",".join(self.parts)


def check_options(task: Task, cloud: str) -> None:
    """Refuse what is not known: nothing is ignored in silence."""
    known = [name for name, _ in OPTIONS]
    problems = [Problem("mounts", f"not supported by {cloud}")] if task.mounts else []
    problems += [
        Problem(f"options.{name}", f"unknown option; must be one of {', '.join(known)}")
        for name in task.options
        if name not in known
    ]
    if problems:
        raise InvalidInput(problems[0].path, problems[0].message, *problems[1:])
    ssh_from(task)
    network_of(task)


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
