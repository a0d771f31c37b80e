"""Fixtures for tests on Kubernetes; import them in a conftest.py."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from sojourn.clouds.k8s.operator import KubernetesMpiOperator
from sojourn.core.context import Context
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load
from tests.kube import layout, places
from tests.kube.in_use import KubeCluster, cluster_in_use
from tests.kube.namespaces import Namespace

__all__ = ["KubeCluster", "kube_cluster", "kube_namespace", "mpi_operator"]


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


@pytest.fixture
def mpi_operator(kube_cluster: KubeCluster) -> Api:
    """Has mpi-operator run in the cluster, for this test and later ones; its API as an admin."""
    with pytest.MonkeyPatch.context() as during:
        during.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
        for name in ("KUBECONFIG_DATA", "KUBERNETES_CONFIGURATION", "SOJOURN_K8S_NAMESPACE"):
            during.delenv(name, raising=False)
        api = Api(load)
        assert api.login
    operator = KubernetesMpiOperator(api)
    if operator.look(Context()) is None:
        kube_cluster.must_be_ours()  # nobody would remove it
    with places.locked(f"{layout.STATE.name}.mpi"):
        operator.install(Context())
    return api
