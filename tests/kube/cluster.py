"""Brings the cluster up, waits for it, and takes it down without a trace."""

from __future__ import annotations

import fcntl
import http.client
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kube import (
    binaries,
    certificates,
    control_plane,
    groups,
    images,
    network,
    node_files,
    nodes,
    packages,
    places,
    processes,
    provisioner,
)
from tests.kube.api import Api, ApiError
from tests.kube.layout import NODES, Node
from tests.support.waiting import patience

__all__ = ["build", "down", "kill_node", "locked", "revive_node", "unavailable", "up"]

Say = Callable[[str], None]
_READY_WITHIN = 120.0


def build(say: Say) -> None:
    """All that a cluster starts from; what was built before is not built again."""
    say("Installing missing programs")
    packages.install()
    say("Building Kubernetes (10 minutes or more, the first time)")
    binaries.build()
    say("Building images")
    images.build()


def unavailable() -> str | None:
    """Why no cluster can be started here, and what to do about it."""
    if not sys.platform.startswith("linux"):
        return "a Kubernetes cluster needs Linux; set SOJOURN_TEST_KUBECONFIG to use another one"
    if os.geteuid() != 0:
        return "a Kubernetes cluster needs root: run with sudo, or set SOJOURN_TEST_KUBECONFIG"
    if not binaries.built() or not images.built():
        return "Kubernetes is not built: run `make kube`, or set SOJOURN_TEST_KUBECONFIG"
    if packages.missing():
        return f"programs are missing: apt-get install {' '.join(packages.missing())}"
    return None


def up(say: Say) -> Api:
    """Start what does not run yet, and return when pods can run."""
    _check_root()
    build(say)
    if places.state().exists() and not all(map(processes.alive, control_plane.NAMES)):
        say("Cleaning up after an earlier run")
        down(say)
    say("Starting the control plane")
    if not places.kubeconfig().exists():
        certificates.create(places.kubeconfig().parent)
    network.create()
    control_plane.start_api()
    api = Api(places.kubeconfig())
    _wait("the API server", lambda: api.text("/readyz") == "ok")
    control_plane.start_controllers()
    _create_defaults(api)
    say("Starting nodes")
    for node in NODES:
        nodes.start(node)
    for node in NODES:
        say(f"Waiting for node {node.name}")
        wait_until_ready(api, node)
    _wait("service accounts", lambda: api.exists(_DEFAULT_ACCOUNT))
    return api


def down(say: Say) -> None:
    """Stop and remove all, of a cluster that runs as of one that crashed."""
    _check_root()
    for node in NODES:
        say(f"Stopping node {node.name}")
        nodes.kill(node)
    say("Stopping the control plane")
    for name in reversed(control_plane.NAMES):
        processes.stop(name)
    network.remove()
    shutil.rmtree(places.state(), ignore_errors=True)
    left = [str(path) for node in NODES for path in groups.found(node.group)]
    left += [str(places.state())] if places.state().exists() else []
    if left:
        raise RuntimeError(f"Could not remove {', '.join(left)}")


def kill_node(node: Node) -> None:
    """As a machine that loses its power."""
    _check_root()
    nodes.kill(node)


def revive_node(node: Node, eviction: Mapping[str, str] = node_files.EVICTION) -> None:
    """With the disk that it had; returns when it is ready again."""
    _check_root()
    api = Api(places.kubeconfig())
    nodes.start(node, eviction)
    wait_until_ready(api, node)


def wait_until_ready(api: Api, node: Node) -> None:
    """Nothing keeps pods from it any more, either."""
    path = f"/api/v1/nodes/{node.name}"

    def ready() -> bool:
        found = api.get(path)
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        return conditions.get("Ready") == "True" and not found["spec"].get("taints")

    _wait(f"node {node.name}", ready)


@contextmanager
def locked() -> Iterator[None]:
    """One command at a time."""
    places.cache().mkdir(parents=True, exist_ok=True)
    with Path(places.cache() / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def _check_root() -> None:
    if os.geteuid() != 0:
        raise RuntimeError("A Kubernetes cluster needs root. Run the command with sudo")


def _create_defaults(api: Api) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    binding = {
        "metadata": {"name": "kube-proxy"},
        "roleRef": {**role, "name": "system:node-proxier"},
        "subjects": [{**role, "kind": "User", "name": "system:kube-proxy"}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    wanted: list[tuple[str, dict[str, Any]]] = [(bindings, binding)]
    wanted += [("/apis/storage.k8s.io/v1/storageclasses", each) for each in provisioner.CLASSES]
    for path, body in wanted:
        if not api.exists(f"{path}/{body['metadata']['name']}"):
            api.create(path, body)


def _wait(what: str, happened: Callable[[], bool]) -> None:
    start = time.monotonic()
    while True:
        reason = "not ready"
        try:
            if happened():
                return
        except (ApiError, OSError, http.client.HTTPException) as error:
            reason = str(error)
        logs = places.state() / "logs"
        if ended := control_plane.ended():
            raise RuntimeError(f"{', '.join(ended)} ended. See the logs in {logs}")
        if time.monotonic() > start + patience(_READY_WITHIN):
            raise RuntimeError(f"Timed out waiting for {what} ({reason}). See the logs in {logs}")
        time.sleep(0.1)
