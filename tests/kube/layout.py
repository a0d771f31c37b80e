"""The fixed names and addresses of a cluster. There is one on a computer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.kube import places

__all__ = [
    "API",
    "API_SERVICE",
    "BRIDGE",
    "ETCD",
    "ETCD_PEER",
    "GATEWAY",
    "NODES",
    "POD_NETWORK",
    "SERVICE_NETWORK",
    "Node",
    "node",
]

BRIDGE = "sojourn-kube"
GATEWAY = "10.89.0.1"  # this computer, on the bridge
API = f"https://{GATEWAY}:6443"
ETCD = "http://127.0.0.1:12379"
ETCD_PEER = "http://127.0.0.1:12380"
POD_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: its disk is a folder here, which it has as /var."""

    number: int

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> str:
        return f"10.89.0.{10 + self.number}"

    @property
    def pods(self) -> str:
        return f"10.244.{self.number}.0/24"

    @property
    def link(self) -> str:
        """The network card of this computer that leads to the node."""
        return f"sojourn-{self.name}"

    @property
    def group(self) -> str:
        """The control group of its pods."""
        return f"sojourn-kube-{self.name}"

    @property
    def folder(self) -> Path:
        return places.state() / self.name

    @property
    def disk(self) -> Path:
        return self.folder / "var"


NODES = (Node(1), Node(2))


def node(name: str) -> Node:
    for each in NODES:
        if each.name == name:
            return each
    raise ValueError(f"node {name} not found: must be one of {', '.join(n.name for n in NODES)}")
