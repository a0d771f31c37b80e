"""The cluster that the tests of this process use: one of ours, or the one of a variable."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.kube import cluster, layout, nodes, prerequisites, sharing
from tests.kube.api import Api

__all__ = ["KubeCluster", "cluster_in_use"]

_OPEN = ExitStack()
atexit.register(_OPEN.close)


@dataclass(frozen=True)
class KubeCluster:
    """A cluster to test on, and what can be done to it."""

    api: Api
    kubeconfig: Path
    ours: bool

    def must_be_ours(self) -> None:
        """Skips the test on a cluster of others, whose nodes and operators are not ours."""
        if not self.ours:
            pytest.skip(f"changes the whole cluster: unset {prerequisites.KUBECONFIG}")

    def kill_node(self, name: str) -> None:
        """Take the node away without notice; the test is skipped on a cluster of others."""
        self.must_be_ours()
        cluster.kill_node(layout.node(name))

    def revive_node(self, name: str) -> None:
        self.must_be_ours()
        cluster.revive_node(layout.node(name))

    def tag_image(self, name: str, new: str) -> None:
        """Have all nodes know an image by another name as well."""
        self.must_be_ours()
        for node in layout.NODES:
            nodes.tag_image(node, name, new)

    def untag_image(self, name: str) -> None:
        for node in layout.NODES:
            nodes.untag_image(node, name)


@cache
def cluster_in_use() -> KubeCluster:
    """A cluster that runs, until this process ends; skips the test where there can be none."""
    other = os.environ.get(prerequisites.KUBECONFIG)
    if other:
        path = Path(other).resolve()
        return KubeCluster(Api(path), path, ours=False)
    reason = prerequisites.unavailable()
    if reason:
        pytest.skip(reason)
    api = _OPEN.enter_context(sharing.shared())
    return KubeCluster(api, layout.KUBECONFIG, ours=True)
