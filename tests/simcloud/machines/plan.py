"""What the host tells the launcher of a machine, and the launcher the host.

Both sides import this; it imports neither, and nothing that takes time to load.
"""

from __future__ import annotations

import json
import signal
import socket
from dataclasses import asdict, dataclass
from typing import Any

# Below the folder of a machine
IMAGE = "../image"  # what all machines of the host are made from: `root` and `usr`
WRITTEN = "written"  # all that was written in the machine: `root`, `usr`, `run` and `shm`
WORK = "work"  # what overlayfs needs for itself
ROOT = "root"  # where the machine puts its file system together, in its own mount namespace
CONSOLE = "console"
BOOT_ID = "boot_id"

# Capabilities that no process of a machine may have: modules, raw I/O, clock and kernel log are the
# host's, whatever namespace a process is in.
DENIED = {"sys_module": 16, "sys_rawio": 17, "sys_time": 25, "syslog": 34}

POWER_BUTTON = signal.SIGRTMIN + 4  # what systemd takes for it

_LARGEST = 1 << 16
_MOST_SOCKETS = 250


@dataclass(frozen=True)
class Plan:
    """How to make the machine."""

    folder: str
    cgroup: str
    hostname: str
    address: str
    cabled: bool  # whether the address is that of a card, or else of the loopback
    listen: tuple[tuple[str, int], ...]
    python: tuple[str, str] | None  # a folder of the host, and where it is to be in the machine
    init: tuple[str, ...]

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Plan:
        data = json.loads(text)
        data["listen"] = tuple((address, port) for address, port in data["listen"])
        data["python"] = tuple(data["python"]) if data["python"] else None
        data["init"] = tuple(data["init"])
        return Plan(**data)


def tell(control: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message, with descriptors."""
    socket.send_fds(control, [json.dumps(message).encode()[:_LARGEST]], fds)


def hear(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next message and its descriptors; an empty one if the other side has gone."""
    try:
        data, fds, _, _ = socket.recv_fds(control, _LARGEST, _MOST_SOCKETS)
    except ConnectionError:
        return {}, []
    return (json.loads(data) if data else {}), fds
