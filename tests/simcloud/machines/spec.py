"""What a caller says about a machine, and is told. No behaviour, and nothing of any cloud."""

from __future__ import annotations

import enum
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tests.simcloud.machines.running import RunningMachine
    from tests.simcloud.machines.wires import Cable

Serve = Callable[[socket.socket], None]
"""Talks to one client inside of the machine, in a thread of its own. The caller closes the socket.
It has to end when the client has gone; an OSError is the client's loss and no error."""


class MachineError(Exception):
    """A machine could not do what it was asked to."""


class End(enum.Enum):
    """How a machine ended."""

    POWERED_OFF = "powered off"
    RESTARTED = "restarted"  # it comes back if somebody has the host restart it
    KILLED = "killed"
    CRASHED = "crashed"


@dataclass(frozen=True)
class Endpoint:
    """A TCP port that answers inside of the machine. See `serving` for what it can be served by."""

    address: str
    port: int
    serve: Serve


@dataclass(frozen=True)
class Login:
    """A user of the machine who may do everything by sudo, and the public keys that open it."""

    user: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class MachineSpec:
    """A machine to boot."""

    id: str
    user_data: bytes = b""  # a script with a shebang, may be gzipped; anything else is not run
    endpoints: tuple[Endpoint, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)  # lines of /etc/hosts: name to address
    certificates: bytes = b""  # authorities to trust beside the usual ones, PEM
    hostname: str = ""  # the id, unless said
    logins: tuple[Login, ...] = ()  # made before user-data runs
    files: Mapping[str, bytes] = field(default_factory=dict)  # more that it has at its first boot
    disk: Path | None = None  # what `Host.capture` returned, to boot from
    cable: Cable | None = None  # to other machines; without it, there are none
    every_boot: bool = False  # user-data runs again when the machine is restarted
    on_end: Callable[[RunningMachine], None] | None = None
    """Called once, in a thread of the machine, when nothing of it runs any more. It may boot other
    machines; a host that was closed since refuses them with a MachineError. It is not called for
    machines that were alive when the host was closed."""


class Process(NamedTuple):
    """A process of a machine, as seen from outside."""

    pid: int
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    session: int  # 0: it has gone, and the rest is empty
