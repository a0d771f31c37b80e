"""The network between this computer and the nodes: a bridge, without a way to anywhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kube.layout import BRIDGE, GATEWAY, Node

__all__ = ["connect", "create", "disconnect", "remove"]


def create() -> None:
    if not _exists(BRIDGE):
        _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("address", "replace", f"{GATEWAY}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def connect(node: Node, pid: int) -> None:
    """Put a network card into the namespace of this process, which sets its address itself."""
    _ip("link", "add", node.link, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
    _ip("link", "set", node.link, "master", BRIDGE, "up")
    _ip("route", "replace", node.pods, "via", node.address)


def disconnect(node: Node) -> None:
    """Without a wait for the kernel, which clears up after a namespace when it has time."""
    _delete(node.link)


def remove() -> None:
    """Its routes go with it."""
    _delete(BRIDGE)


def _delete(link: str) -> None:
    try:
        _ip("link", "delete", link)
    except RuntimeError:
        if _exists(link):
            raise


def _exists(link: str) -> bool:
    return Path("/sys/class/net", link).exists()


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Could not run ip {' '.join(arguments)}: {done.stderr.strip()}")
