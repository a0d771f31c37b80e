"""The network of a machine, made in its own namespace by its first process.

There is nothing but the loopback, which carries all addresses, and maybe a card that leads to other
machines; so only what listens inside, and they, can be reached, and everything else fails at once.
Who answers does not belong here.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence

from tests.simcloud.machines.wires import CARD, LARGEST

_BACKLOG = 128


def configure(addresses: Sequence[str], card: str = "") -> None:
    """Bring up the loopback with these addresses, and a card with its own, which leads anywhere."""
    lines = ["link set lo up"]
    if card:
        lines += [
            f"addr add {card}/32 dev {CARD}",
            f"link set {CARD} mtu {LARGEST} up",
            f"route add default dev {CARD} src {card}",
        ]
    for address in dict.fromkeys(addresses):
        if ":" in address:
            lines.append(f"addr add {address}/128 dev lo nodad")
        elif not address.startswith("127."):
            lines.append(f"addr add {address}/32 dev lo")
    commands = "\n".join(lines)
    done = subprocess.run(["ip", "-batch", "-"], input=commands, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{done.stderr.strip()}\nin:\n{commands}")


def listen(address: str, port: int) -> socket.socket:
    """A listening socket, which stays in this namespace whoever holds it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.create_server((address, port), family=family, backlog=_BACKLOG)
