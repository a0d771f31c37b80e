"""Fixtures for tests on Kubernetes; import them in a conftest.py.

The cluster is one of ours, shared by all that run at the same time, or the one that
SOJOURN_TEST_KUBECONFIG leads to.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kube import cluster, layout, prerequisites, sharing
from tests.kube.api import Api
from tests.kube.namespaces import Namespace

__all__ = ["KubeCluster", "kube_cluster", "kube_namespace"]


@dataclass(frozen=True)
class KubeCluster:
    """A cluster to test on, and what can be done to it."""

    api: Api
    kubeconfig: Path
    ours: bool

    def kill_node(self, name: str) -> None:
        """Take the node away without notice; the test is skipped on a cluster of others."""
        self._must_be_ours()
        cluster.kill_node(layout.node(name))

    def revive_node(self, name: str) -> None:
        self._must_be_ours()
        cluster.revive_node(layout.node(name))

    def _must_be_ours(self) -> None:
        if not self.ours:
            pytest.skip(f"takes nodes away: unset {prerequisites.KUBECONFIG}")


@pytest.fixture(scope="session")
def kube_cluster() -> Iterator[KubeCluster]:
    """A cluster that runs; tests are skipped where there can be none."""
    other = os.environ.get(prerequisites.KUBECONFIG)
    if other:
        path = Path(other).resolve()
        yield KubeCluster(Api(path), path, ours=False)
        return
    reason = prerequisites.unavailable()
    if reason:
        pytest.skip(reason)
    with sharing.shared() as api:
        yield KubeCluster(api, layout.KUBECONFIG, ours=True)


@pytest.fixture
def kube_namespace(kube_cluster: KubeCluster) -> Iterator[Namespace]:
    """A namespace of its own, which leaves nothing: no object, and no volume."""
    namespace = Namespace(kube_cluster.api, f"sojourn-test-{uuid.uuid4().hex[:10]}")
    namespace.create()
    try:
        yield namespace
    finally:
        namespace.remove()
    assert (namespace.objects(), namespace.volumes()) == ([], [])
