"""`sojourn mpi`: mpi-operator is installed, found, and removed without a trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.api import mpi
from sojourn.clouds.k8s import operator
from sojourn.clouds.k8s.rights import allowed
from sojourn.core.errors import AuthError, Conflict, Transient
from sojourn.core.operators import IMAGE, NAMESPACE, Operator
from sojourn.kube.api import Api
from sojourn.kube.kubeconfig import load
from tests.kube.accounts import single, without
from tests.kube.fixtures import KubeCluster
from tests.kube.installers import Installer, installer
from tests.kube.namespaces import Namespace
from tests.support.waiting import until

pytestmark = pytest.mark.alone  # a cluster has one operator, which other tests use

_ALL = (
    "/api/v1/namespaces",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
)
_CRDS = _ALL[1]
_KIND = f"{_CRDS}/mpijobs.kubeflow.org"
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/mpi-operator"
_INSTALLED = Operator(NAMESPACE, IMAGE, "0.8.2", ready=True, ours=True)


def _things(cluster: KubeCluster) -> dict[str, bool]:
    """All that is there, and whether it is going: a namespace of a former test takes a while."""
    return {
        f"{path}/{item['metadata']['name']}": "deletionTimestamp" in item["metadata"]
        for path in _ALL
        for item in cluster.api.get(path)["items"]
        if not item["metadata"]["name"].startswith("sojourn-test-")
    }


def _same_as(cluster: KubeCluster, before: dict[str, bool]) -> None:
    after = _things(cluster).keys()
    assert after - before.keys() == set()
    assert {name for name, going in before.items() if not going} - after == set()


@pytest.fixture(autouse=True)
def bare(kube_cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cluster without an operator, before and after."""
    kube_cluster.must_be_ours()
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    for name in ("KUBECONFIG_DATA", "KUBERNETES_CONFIGURATION"):
        monkeypatch.delenv(name, raising=False)
    mpi.uninstall(force=True)
    before = _things(kube_cluster)
    yield
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    mpi.uninstall(force=True)
    _same_as(kube_cluster, before)


def _job(name: str = "hello") -> dict[str, Any]:
    pod = {"containers": [{"name": "main", "image": "localhost/mpi:1", "command": ["true"]}]}
    replicas = {"replicas": 1, "template": {"spec": pod}}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {"Launcher": replicas, "Worker": replicas},
            "runPolicy": {"suspend": True},
        },
    }


def test_it_is_installed_found_and_removed(kube_cluster: KubeCluster) -> None:
    assert mpi.status() is None
    assert mpi.install() == _INSTALLED
    assert mpi.status() == _INSTALLED
    before = kube_cluster.api.get(_DEPLOYMENT)["metadata"]["generation"]
    assert mpi.install() == _INSTALLED
    assert kube_cluster.api.get(_DEPLOYMENT)["metadata"]["generation"] == before
    assert mpi.uninstall()
    assert mpi.status() is None
    assert not mpi.uninstall()


def test_one_of_others_is_left_alone(kube_cluster: KubeCluster, kube_namespace: Namespace) -> None:
    mpi.install()
    kind = kube_cluster.api.get(_KIND)
    mpi.uninstall()
    metadata = {"name": kind["metadata"]["name"]}
    kube_cluster.api.create(_CRDS, {**kind, "metadata": metadata, "status": {}})
    pod = {"containers": [{"name": "x", "image": "registry.example.com/mpi-operator:0.7.0"}]}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    deployments = f"/apis/apps/v1/namespaces/{kube_namespace.name}/deployments"
    kube_cluster.api.create(deployments, {"metadata": {"name": "theirs"}, "spec": spec})
    try:
        until(lambda: mpi.status() is not None)
        events: list[object] = []
        found = mpi.install(on_event=events.append)
        image = "registry.example.com/mpi-operator:0.7.0"
        assert found == Operator(kube_namespace.name, image, "0.7.0", ready=False, ours=False)
        assert "already installed; left as it is" in str(events)
        with pytest.raises(Conflict, match=r"0\.7\.0 .* was not installed by Sojourn"):
            mpi.uninstall(force=True)
        assert not kube_cluster.api.exists(_DEPLOYMENT)
    finally:
        kube_cluster.api.delete(_KIND)
        until(lambda: not kube_cluster.api.exists(_KIND))


def test_jobs_of_another_version(kube_cluster: KubeCluster) -> None:
    mpi.install()
    kind = kube_cluster.api.get(_KIND)
    mpi.uninstall()
    old = {**kind["spec"], "versions": [{**kind["spec"]["versions"][0], "name": "v1"}]}
    metadata = {"name": kind["metadata"]["name"]}
    kube_cluster.api.create(_CRDS, {**kind, "metadata": metadata, "spec": old, "status": {}})
    try:
        with pytest.raises(Conflict, match="MPIJobs of another API version: v1"):
            mpi.install()
    finally:
        kube_cluster.api.delete(_KIND)
        until(lambda: not kube_cluster.api.exists(_KIND))


def test_a_namespace_of_others_stays(kube_namespace: Namespace) -> None:
    """Also if it only takes pods without privileges."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube_namespace.api.patch(kube_namespace.path, {"metadata": {"labels": labels}})
    assert mpi.install(namespace=kube_namespace.name).namespace == kube_namespace.name
    with pytest.raises(Conflict, match=f"already installed in namespace {kube_namespace.name}"):
        mpi.install(namespace="another")
    assert mpi.install().namespace == kube_namespace.name
    assert mpi.uninstall()
    assert kube_namespace.api.get(kube_namespace.path)["status"]["phase"] == "Active"
    assert kube_namespace.objects() == []
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{kube_namespace.name}/leases"
    assert kube_namespace.api.get(leases)["items"] == []


def test_our_namespace_stays_if_others_use_it(kube_cluster: KubeCluster) -> None:
    mpi.install()
    namespace = f"/api/v1/namespaces/{NAMESPACE}"
    kube_cluster.api.create(f"{namespace}/configmaps", {"metadata": {"name": "theirs"}})
    events: list[object] = []
    try:
        assert mpi.uninstall(on_event=events.append)
        assert "Keeping namespace mpi-operator" in str(events)
        assert "ConfigMap theirs" in str(events)
        assert kube_cluster.api.exists(f"{namespace}/configmaps/theirs")
    finally:
        kube_cluster.api.delete(namespace)
        until(lambda: not kube_cluster.api.exists(namespace), 60)


def test_what_is_left_without_the_kind_is_removed_too(kube_cluster: KubeCluster) -> None:
    mpi.install()
    kube_cluster.api.delete(_KIND)
    until(lambda: not kube_cluster.api.exists(_KIND))
    assert mpi.uninstall()
    assert not kube_cluster.api.exists(_DEPLOYMENT)


def test_an_image_that_cannot_be_pulled(monkeypatch: pytest.MonkeyPatch) -> None:
    """And another one afterwards; a copy that was chosen stays."""
    monkeypatch.setattr(operator, "_READY_WITHIN", 1.0)
    absent = "localhost/absent:1"

    def told() -> str:
        with pytest.raises(Transient, match="installed but not ready") as error:
            mpi.install(image=absent)
        return str(error.value)

    until(lambda: "Image" in told(), 60)
    assert mpi.status() == Operator(NAMESPACE, absent, "1", ready=False, ours=True)
    monkeypatch.undo()


def test_a_field_that_somebody_else_changed(kube_cluster: KubeCluster) -> None:
    mpi.install()
    container = {"name": "mpi-operator", "image": "example.com/mpi-operator:9"}
    spec = {"template": {"spec": {"containers": [container]}}}
    kube_cluster.api.patch(_DEPLOYMENT, {"spec": spec})
    with pytest.raises(Conflict, match=r"changed by somebody else: .*image") as error:
        mpi.install(image=IMAGE)
    assert "Undo that change" in error.value.hint


@pytest.fixture
def account(
    kube_cluster: KubeCluster, kube_namespace: Namespace, tmp_path: Path, bare: None
) -> Iterator[Installer]:
    with installer(kube_namespace, kube_cluster.kubeconfig, tmp_path) as made:
        yield made


def test_the_role_of_the_page_is_enough(
    account: Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(account.file))
    assert mpi.install() == _INSTALLED
    assert mpi.status() == _INSTALLED
    assert mpi.uninstall()


def test_it_stays_while_it_is_used(
    account: Installer,
    kube_cluster: KubeCluster,
    kube_namespace: Namespace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unless somebody insists, with the role of the page; then nothing of the jobs stays."""
    monkeypatch.setenv("KUBECONFIG", str(account.file))
    mpi.install()
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{kube_namespace.name}/mpijobs"
    before = kube_namespace.objects()
    kube_cluster.api.create(path, _job())
    with pytest.raises(Conflict, match=f"in use by {kube_namespace.name}/hello"):
        mpi.uninstall()
    assert mpi.status() == _INSTALLED
    until(lambda: len(kube_namespace.objects()) > len(before) + 1)
    assert mpi.uninstall(force=True)
    assert mpi.status() is None
    assert kube_namespace.objects() == before


def test_every_right_of_the_page_is_needed(
    account: Installer, kube_cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, the error names it, and nothing is made."""
    monkeypatch.setenv("KUBECONFIG", str(account.file))
    before = _things(kube_cluster)
    rules = account.rules()
    needless: list[tuple[str, ...]] = []
    everywhere = Api(load).inside("")
    for rule, resource, verb in single(rules):
        account.set_rules(without(rules, rule, resource, verb))
        group = rule["apiGroups"][0]
        until(lambda v=verb, g=group, r=resource: not allowed(everywhere, v, g, r))  # type: ignore[misc]
        try:
            mpi.install()
            needless.append((verb, resource, ""))
        except AuthError as error:
            if not re.search(rf"\b{verb} {resource}\b", str(error)):
                needless.append((verb, resource, str(error)))
    assert needless == []
    _same_as(kube_cluster, before)


def test_somebody_without_rights(
    account: Installer, kube_cluster: KubeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.set_rules([])
    monkeypatch.setenv("KUBECONFIG", str(account.file))
    everywhere = Api(load).inside("")
    until(lambda: not allowed(everywhere, "get", "apps", "deployments"))
    assert mpi.status() is None
    with pytest.raises(AuthError, match="is not allowed to install mpi-operator") as error:
        mpi.install()
    assert account.name in str(error.value)
    monkeypatch.setenv("KUBECONFIG", str(kube_cluster.kubeconfig))
    mpi.install()
    monkeypatch.setenv("KUBECONFIG", str(account.file))
    assert mpi.status() == Operator()
    assert mpi.install() == Operator()
    with pytest.raises(AuthError):
        mpi.uninstall()
