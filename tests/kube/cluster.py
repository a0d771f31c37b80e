"""Brings the cluster up, waits for it, and takes it down without a trace."""

from __future__ import annotations

import http.client
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tests.kube import (
    certificates,
    control_plane,
    dns,
    groups,
    layout,
    network,
    node_files,
    nodes,
    places,
    prerequisites,
    processes,
    provisioner,
)
from tests.kube.api import Api, ApiError
from tests.kube.layout import NODES, Node
from tests.kube.prerequisites import Say
from tests.support.waiting import patience

__all__ = ["down", "keep", "kept", "kill_node", "revive_node", "up"]

_READY_WITHIN = 120.0
_KEPT = layout.STATE / "kept"
_LOST = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def up(say: Say) -> Api:
    """Start what does not run yet, and return when pods can run."""
    _check_root()
    prerequisites.build(say)
    with _locked():
        return _up(say)


def _up(say: Say) -> Api:
    if layout.STATE.exists() and not all(map(processes.alive, control_plane.NAMES)):
        say("Cleaning up after an earlier run")
        _down(say)
    say("Starting the control plane")
    if not layout.KUBECONFIG.exists():
        certificates.create(layout.KUBECONFIG.parent)
    network.create()
    control_plane.start_api()
    api = Api(layout.KUBECONFIG)
    _wait("the API server", lambda: api.text("/readyz") == "ok")
    control_plane.start_controllers()
    _create_defaults(api)
    say("Starting nodes")
    before = {node: _last_heard(api, node) for node in NODES}
    for node in NODES:
        nodes.start(node)
    for node in NODES:
        say(f"Waiting for node {node.name}")
        _wait_for_node(api, node, before[node])
    _wait("service accounts", lambda: api.exists(_DEFAULT_ACCOUNT))
    _wait("cluster DNS", dns.answers)
    return api


def down(say: Say) -> None:
    """Stop and remove all, of a cluster that runs as of one that crashed."""
    _check_root()
    with _locked():
        _down(say)


def _down(say: Say) -> None:
    for node in NODES:
        say(f"Stopping node {node.name}")
        nodes.kill(node)
    say("Stopping the control plane")
    processes.stop_all()
    network.remove()
    shutil.rmtree(layout.STATE, ignore_errors=True)
    left = [str(path) for node in NODES for path in groups.found(node.group)]
    left += [str(layout.STATE)] if layout.STATE.exists() else []
    if left:
        raise RuntimeError(f"Could not remove {', '.join(left)}")


def keep() -> None:
    """Let it run when the tests that use it end."""
    _KEPT.touch()


def kept() -> bool:
    return _KEPT.exists()


def kill_node(node: Node) -> None:
    """As a machine that loses its power."""
    _check_root()
    with _locked():
        nodes.kill(node)


def revive_node(node: Node, eviction: Mapping[str, str] = node_files.EVICTION) -> None:
    """With the disk that it had; returns when it is ready again."""
    _check_root()
    with _locked():
        api = Api(layout.KUBECONFIG)
        before = _last_heard(api, node)
        nodes.start(node, eviction)
        _wait_for_node(api, node, before)


def _wait_for_node(api: Api, node: Node, before: str | None) -> None:
    """Nothing keeps pods from it any more, either."""

    def ready() -> bool:
        condition = _ready(api, node)
        taints = api.get(f"/api/v1/nodes/{node.name}")["spec"].get("taints", [])
        missed = _LOST & {taint["key"] for taint in taints}
        fresh = condition.get("lastHeartbeatTime") != before
        return condition.get("status") == "True" and fresh and not missed

    _wait(f"node {node.name}", ready)


def _last_heard(api: Api, node: Node) -> str | None:
    """When, of a node that does not run: until it is missed, it looks ready."""
    return None if nodes.runs(node) else _ready(api, node).get("lastHeartbeatTime")


def _ready(api: Api, node: Node) -> dict[str, str]:
    """What the node last said of itself, if anything."""
    for found in api.get("/api/v1/nodes")["items"]:
        if found["metadata"]["name"] == node.name:
            conditions: list[dict[str, str]] = found["status"].get("conditions", [])
            return next((each for each in conditions if each["type"] == "Ready"), {})
    return {}


def _locked() -> AbstractContextManager[None]:
    """One command at a time."""
    return places.locked(layout.STATE.name)


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
        logs = layout.STATE / "logs"
        if ended := control_plane.ended():
            raise RuntimeError(f"{', '.join(ended)} ended. See the logs in {logs}")
        if time.monotonic() > start + patience(_READY_WITHIN):
            raise RuntimeError(f"Timed out waiting for {what} ({reason}). See the logs in {logs}")
        time.sleep(0.1)
