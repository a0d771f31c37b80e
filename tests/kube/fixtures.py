"""Fixtures for tests on Kubernetes; import them in a conftest.py."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.kube.in_use import KubeCluster, cluster_in_use
from tests.kube.namespaces import Namespace

__all__ = ["KubeCluster", "kube_cluster", "kube_namespace"]


@pytest.fixture(scope="session")
def kube_cluster() -> KubeCluster:
    """A cluster that runs; tests are skipped where there can be none."""
    return cluster_in_use()


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
