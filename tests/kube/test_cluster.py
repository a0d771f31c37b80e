"""The cluster for tests is a real one: what other tests rely on, and that it leaves no trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube import images, layout, prerequisites, traces
from tests.kube.api import ApiError
from tests.kube.fixtures import KubeCluster
from tests.kube.namespaces import Namespace
from tests.support.waiting import until

_NODES = [node.name for node in layout.NODES]
_LOST_WITHIN = 90


@pytest.fixture
def ours(kube_cluster: KubeCluster) -> None:
    if not kube_cluster.ours:
        pytest.skip(f"looks into the cluster's folder: unset {prerequisites.KUBECONFIG}")


def test_it_is_of_the_version_that_was_built(kube_cluster: KubeCluster, ours: None) -> None:
    assert kube_cluster.api.get("/version")["gitVersion"] == "v1.36.3"
    found = kube_cluster.api.get("/api/v1/nodes")["items"]
    assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in found} == {"v1.36.3"}


@pytest.mark.parametrize("node", _NODES)
def test_a_pod_runs_on_each_node(kube_namespace: Namespace, node: str) -> None:
    script = "python -c 'import ctypes, lzma, sqlite3, ssl, sys; print(sys.version_info[:2])'"
    pod = kube_namespace.run_pod("a", script, image=images.PYTHON, node=node)
    kube_namespace.wait(pod, "Succeeded")
    assert kube_namespace.api.text(f"{pod}/log") == "(3, 11)\n"
    assert kube_namespace.api.get(pod)["spec"]["nodeName"] == node


def test_a_command_in_a_container_has_input_output_and_an_exit_code(
    kube_namespace: Namespace,
) -> None:
    pod = kube_namespace.run_pod("a")
    kube_namespace.wait(pod, "Running")
    script = "wc -c; echo bad >&2; exit 7"
    ran = kube_namespace.execute(pod, ["sh", "-c", script], stdin=bytes(200_000))
    assert (ran.code, ran.out, ran.err) == (7, "200000\n", "bad\n")


def test_pods_reach_the_api_and_each_other(kube_namespace: Namespace) -> None:
    first = kube_namespace.run_pod("a", "nc -l -p 5000 -e echo hello", node="n1")
    kube_namespace.wait(first, "Running")
    address = kube_namespace.api.get(first)["status"]["podIP"]
    second = kube_namespace.run_pod("b", image=images.PYTHON, node="n2")
    kube_namespace.wait(second, "Running")
    script = "import os, socket, sys; print(socket.create_connection(eval(sys.argv[1])).recv(9))"
    heard = kube_namespace.execute(second, ["python", "-c", script, f"('{address}', 5000)"])
    assert heard.out == "b'hello\\n'\n"
    # A service, so the proxy has a part in it
    api = "(os.environ['KUBERNETES_SERVICE_HOST'], 443)"
    script = script.replace(".recv(9)", ".getpeername()[1]")
    assert kube_namespace.execute(second, ["python", "-c", script, api]).out == "443\n"


def test_pods_find_services_and_each_other_by_name(kube_namespace: Namespace) -> None:
    service = {"clusterIP": "None", "selector": {"app": "a"}, "publishNotReadyAddresses": True}
    body = {"metadata": {"name": "named"}, "spec": service}
    kube_namespace.api.create(f"{kube_namespace.path}/services", body)
    pod = {
        "containers": [{"name": "main", "image": images.SHELL, "command": ["sleep", "10000"]}],
        "hostname": "first",
        "subdomain": "named",
        "terminationGracePeriodSeconds": 1,
    }
    metadata = {"name": "a", "labels": {"app": "a"}}
    kube_namespace.api.create(f"{kube_namespace.path}/pods", {"metadata": metadata, "spec": pod})
    kube_namespace.wait(f"{kube_namespace.path}/pods/a", "Running")
    address = kube_namespace.api.get(f"{kube_namespace.path}/pods/a")["status"]["podIP"]
    asking = kube_namespace.run_pod("b", image=images.PYTHON)
    kube_namespace.wait(asking, "Running")

    def found(name: str) -> str:
        script = f"import socket; print(socket.gethostbyname('{name}'))"
        return kube_namespace.execute(asking, ["python", "-c", script]).out.strip()

    within = f"named.{kube_namespace.name}"
    until(lambda: found("first.named") == address)
    for name in (f"first.{within}.svc", f"first.{within}.svc.cluster.local", "named"):
        assert found(name) == address
    assert found("kubernetes.default") == layout.API_SERVICE
    for name in (f"second.{within}.svc", "other", "example.com"):
        assert found(name) == ""


@pytest.mark.parametrize(
    ("image", "user"), [(images.SHELL, "0\n"), (images.SHELL_AS_USER, "1000\n")]
)
def test_an_image_has_its_user(kube_namespace: Namespace, image: str, user: str) -> None:
    pod = kube_namespace.run_pod("a", "id -u", image=image)
    kube_namespace.wait(pod, "Succeeded")
    assert kube_namespace.api.text(f"{pod}/log") == user


def test_pod_security_is_enforced(kube_namespace: Namespace) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kube_namespace.api.patch(kube_namespace.path, {"metadata": {"labels": labels}})
    with pytest.raises(ApiError, match="violates PodSecurity"):
        kube_namespace.run_pod("a")


def test_a_volume_of_a_node_stays_with_it_and_goes_with_its_claim(
    kube_namespace: Namespace, ours: None
) -> None:
    claim = kube_namespace.claim("data", "ReadWriteOnce")
    first = kube_namespace.run_pod("a", "echo 1 > /data/x", node="n2", claims={"data": "/data"})
    kube_namespace.wait(first, "Succeeded")
    second = kube_namespace.run_pod("b", "cat /data/x", claims={"data": "/data"})
    kube_namespace.wait(second, "Succeeded")
    assert kube_namespace.api.text(f"{second}/log") == "1\n"
    assert kube_namespace.api.get(second)["spec"]["nodeName"] == "n2"
    folder = layout.node("n2").disk / "volumes" / kube_namespace.volumes()[0]
    assert (folder / "x").exists()
    for path in (first, second, claim):
        kube_namespace.api.delete(path)
    until(lambda: not folder.exists())
    until(lambda: not kube_namespace.volumes())


def test_a_shared_volume_is_seen_on_both_nodes(kube_namespace: Namespace) -> None:
    claim = kube_namespace.claim("data", "ReadWriteMany", "shared")
    kube_namespace.wait(claim, "Bound")
    first = kube_namespace.run_pod("a", node="n1", claims={"data": "/data"})
    second = kube_namespace.run_pod("b", node="n2", claims={"data": "/data"})
    kube_namespace.wait(first, "Running")
    kube_namespace.wait(second, "Running")
    assert kube_namespace.execute(first, ["sh", "-c", "echo 1 > /data/x"]).code == 0
    assert kube_namespace.execute(second, ["cat", "/data/x"]).out == "1\n"


def test_a_volume_of_a_node_is_not_for_many(kube_namespace: Namespace, ours: None) -> None:
    claim = kube_namespace.claim("data", "ReadWriteMany", "node")
    pod = kube_namespace.run_pod("a", claims={"data": "/data"})
    until(lambda: kube_namespace.events("ProvisioningFailed"))
    assert "only ReadWriteOnce is supported" in kube_namespace.events("ProvisioningFailed")[0]
    assert kube_namespace.api.get(claim)["status"]["phase"] == "Pending"
    assert kube_namespace.api.get(pod)["status"]["phase"] == "Pending"


@pytest.mark.alone
def test_a_node_is_lost_and_comes_back(
    kube_cluster: KubeCluster, kube_namespace: Namespace
) -> None:
    api = kube_namespace.api
    pod = kube_namespace.run_pod("a", node="n2")
    kube_namespace.wait(pod, "Running")
    kube_cluster.kill_node("n2")
    try:
        until(lambda: _ready(kube_cluster, "n2") == "Unknown", _LOST_WITHIN)
        # Kubernetes wants it away, but does not know that it is.
        until(lambda: "deletionTimestamp" in api.get(pod)["metadata"], _LOST_WITHIN)
        assert _ready(kube_cluster, "n1") == "True"
    finally:
        kube_cluster.revive_node("n2")
    assert _ready(kube_cluster, "n2") == "True"
    until(lambda: not api.exists(pod), _LOST_WITHIN)
    again = kube_namespace.run_pod("b", node="n2")
    kube_namespace.wait(again, "Running")


@pytest.mark.alone
def test_a_cluster_leaves_no_trace() -> None:
    reason = prerequisites.unavailable()
    if reason:
        pytest.skip(reason)
    number = 9  # of its own: the one of all other tests goes on
    before = traces.found(number)
    try:
        shown = _command(number, "up")
        assert traces.found(number) != before
        kubeconfig = Path(shown.removeprefix("export KUBECONFIG=").strip())
        assert _command(number, "env") == shown
        _command(number, "kill-node", "n1")
        assert _command(number, "up") == shown
        _kill(kubeconfig.parents[1] / "processes" / "etcd.json")  # a crash
        assert _command(number, "up") == shown
    finally:
        _command(number, "down")
    assert traces.found(number) == before
    assert not kubeconfig.parents[1].exists()


def _kill(record: Path) -> None:
    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)


def _command(number: int, *arguments: str) -> str:
    environment = {**os.environ, "SOJOURN_TEST_KUBE_NUMBER": str(number)}
    command = [sys.executable, "-m", "tests.kube", *arguments]
    return subprocess.check_output(command, text=True, env=environment)


def _ready(cluster: KubeCluster, node: str) -> str:
    conditions = cluster.api.get(f"/api/v1/nodes/{node}")["status"]["conditions"]
    return next(str(each["status"]) for each in conditions if each["type"] == "Ready")
