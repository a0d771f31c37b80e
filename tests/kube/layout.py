"""The names and addresses of a cluster.

Clusters can run side by side: SOJOURN_TEST_KUBE_NUMBER, from 0 (the default) to 9, says which one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.kube.places import cache

__all__ = [
    "API",
    "API_SERVICE",
    "BRIDGE",
    "ETCD",
    "ETCD_PEER",
    "GATEWAY",
    "KUBECONFIG",
    "NODES",
    "NUMBER",
    "POD_NETWORK",
    "SERVICE_NETWORK",
    "STATE",
    "Node",
    "bridge",
    "node",
    "state",
]


def bridge(number: int) -> str:
    return f"sojourn-kube{number or ''}"


def state(number: int) -> Path:
    """All of a running cluster."""
    return cache() / f"run{number or ''}"


NUMBER = int(os.environ.get("SOJOURN_TEST_KUBE_NUMBER", "0"))
assert 0 <= NUMBER <= 9, "SOJOURN_TEST_KUBE_NUMBER must be from 0 to 9"
BRIDGE = bridge(NUMBER)
GATEWAY = f"10.89.{NUMBER}.1"  # this computer, on the bridge
API = f"https://{GATEWAY}:6443"
ETCD = f"http://127.0.0.1:{12379 + 10 * NUMBER}"
ETCD_PEER = f"http://127.0.0.1:{12380 + 10 * NUMBER}"
POD_NETWORK = "10.244.0.0/16"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"


STATE = state(NUMBER)
KUBECONFIG = STATE / "pki" / "admin.kubeconfig"


@dataclass(frozen=True)
class Node:
    """A machine of the cluster: its disk is a folder here, which it has as /var."""

    number: int

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> str:
        return f"10.89.{NUMBER}.{10 + self.number}"

    @property
    def pods(self) -> str:
        return f"10.244.{10 * NUMBER + self.number}.0/24"

    @property
    def link(self) -> str:
        """The network card of this computer that leads to the node."""
        return f"sojourn{NUMBER or ''}-{self.name}"

    @property
    def group(self) -> str:
        """The control group of its pods."""
        return f"{BRIDGE}-{self.name}"

    @property
    def folder(self) -> Path:
        return STATE / self.name

    @property
    def disk(self) -> Path:
        return self.folder / "var"


NODES = (Node(1), Node(2))


def node(name: str) -> Node:
    for each in NODES:
        if each.name == name:
            return each
    raise ValueError(f"node {name} not found: must be one of {', '.join(n.name for n in NODES)}")
