"""Machines that are lost, in the ways in which clusters lose them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.clouds.k8s import names
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import WAITING, Lab, log_of
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until

_EVICTIONS = 20
# Ends when it was interrupted often enough; each attempt stores what it knows.
_STUBBORN = f"""#!/bin/sh
mkdir -p output
echo $SOJOURN_ATTEMPT >> output/attempts
echo up $SOJOURN_ATTEMPT
[ $(wc -l < output/attempts) -gt {_EVICTIONS} ] && exit 0
sleep 300
"""

_SMALL_DISK = """
spec:
  containers:
    - name: script
      resources: {limits: {ephemeral-storage: 50Mi}}
"""


def _pods(kit: KubernetesKit) -> list[dict[str, Any]]:
    return kit.api.list("Pod", f"{names.ROLE}={names.MACHINES}")


def _evict(kit: KubernetesKit, pod: str) -> None:
    """As a drain does: the pod has its notice and its grace."""
    namespace = kit.api.namespace
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    kit.api._call("eviction", "POST", path, {}, body, "application/json")


def _runs(handle: sojourn.Handle, attempt: int) -> bool:
    [rank] = handle.status().ranks
    return rank.attempt >= attempt and rank.state is sojourn.State.RUNNING


def test_twenty_evictions_in_a_row(lab: Lab, kit: KubernetesKit) -> None:
    handle = lab.create(_STUBBORN)
    waits = []
    for attempt in range(1, _EVICTIONS + 1):
        until(lambda attempt=attempt: f"up {attempt}" in log_of(handle))  # type: ignore[misc]
        began = time.monotonic()
        _evict(kit, handle.status().ranks[0].machine)
        until(lambda attempt=attempt: f"up {attempt + 1}" in log_of(handle))  # type: ignore[misc]
        waits.append(round(time.monotonic() - began, 1))
    print("seconds from each eviction to the script running again:", waits)  # noqa: T201
    assert handle.wait().status is sojourn.State.SUCCEEDED
    handle.delete()
    expected = "".join(f"{number}\n" for number in range(1, _EVICTIONS + 2))
    assert lab.output() == {"attempts": expected}
    assert max(waits[10:]) < 3 * max(waits[:3]) + 10  # they do not grow


def test_a_pod_that_takes_too_much_disk_is_evicted(lab: Lab, kit: KubernetesKit) -> None:
    """By the node itself, and not by anybody's call."""
    script = WAITING.replace(
        "sleep 300", "[ $SOJOURN_ATTEMPT = 2 ] || head -c 200M /dev/zero > /tmp/large; sleep 300"
    )
    handle = lab.create(script, options={"pod": _SMALL_DISK})
    until(lambda: log_of(handle).count("up") == 2, 120)
    assert [report.outcome.value for report in handle.reports()] == ["preempted"]
    assert any("Evicted" in event.code for event in handle.events())
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


def test_one_of_three_ranks_is_lost_on_its_own(lab: Lab, kit: KubernetesKit) -> None:
    handle = lab.create(
        WAITING.replace("sleep 300", "until [ -e /dev/shm/go ]; do sleep 0.1; done"), parallelism=3
    )
    until(lambda: log_of(handle).count("up") == 3)
    before = {rank.rank: rank.machine for rank in handle.status().ranks}
    _evict(kit, before[1])
    until(lambda: log_of(handle).count("up") == 4)
    after = {rank.rank: rank.machine for rank in handle.status().ranks}
    assert [rank for rank in before if before[rank] != after[rank]] == [1]
    kit.appear("go")
    assert handle.wait().status is sojourn.State.SUCCEEDED
    handle.delete()


def test_a_pod_that_is_deleted_without_grace(lab: Lab, kit: KubernetesKit, tmp_path: Path) -> None:
    handle = lab.create(WAITING)
    until(lambda: "up" in log_of(handle))
    lab.until_stored(handle, "attempts", tmp_path / "there")
    kit.api.delete("Pod", handle.status().ranks[0].machine, grace=0)
    until(lambda: log_of(handle).count("up") == 2)
    assert _runs(handle, 2)
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


def test_a_stopped_task_has_no_pods_and_resumes(lab: Lab, kit: KubernetesKit) -> None:
    handle = lab.create(WAITING)
    until(lambda: "up" in log_of(handle))
    handle.stop()
    assert [pod for pod in _pods(kit) if pod["status"]["phase"] == "Running"] == []
    handle.start()
    until(lambda: log_of(handle).count("up") == 2)
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n"}


def test_results_outlive_all_that_tells_of_the_pods(lab: Lab, kit: KubernetesKit) -> None:
    """A Job that is suspended deletes its pods, and counts none of them."""
    handle = lab.create("mkdir output; echo x > output/x")
    assert handle.wait().status is sojourn.State.SUCCEEDED
    for job in kit.api.list("Job", names.OURS):
        kit.api.merge("Job", job["metadata"]["name"], {"spec": {"suspend": True}})
    for pod in kit.api.list("Pod", names.OURS):
        kit.api.delete("Pod", pod["metadata"]["name"], grace=0)
    until(lambda: not _pods(kit))
    again = sojourn.get(handle.id)
    assert again.status().state is sojourn.State.SUCCEEDED
    again.delete()
    assert lab.output() == {"x": "x\n"}


@pytest.mark.alone
def test_a_node_is_drained(lab: Lab, kit: KubernetesKit) -> None:
    handle = lab.create(WAITING)
    until(lambda: "up" in log_of(handle))
    [pod] = _pods(kit)
    node = pod["spec"]["nodeName"]
    kit.api.merge("Node", node, {"spec": {"unschedulable": True}})
    try:
        _evict(kit, pod["metadata"]["name"])
        until(lambda: log_of(handle).count("up") == 2)
        machine = handle.status().ranks[0].machine
        assert kit.api.get("Pod", machine)["spec"]["nodeName"] != node
        handle.delete()
    finally:
        kit.api.merge("Node", node, {"spec": {"unschedulable": None}})
    assert lab.output() == {"attempts": "1\n2\n"}


@pytest.mark.alone
def test_a_node_is_killed(
    lab: Lab, kit: KubernetesKit, kube_cluster: KubeCluster, tmp_path: Path
) -> None:
    handle = lab.create(WAITING)
    until(lambda: "up" in log_of(handle))
    lab.until_stored(handle, "attempts", tmp_path / "there")
    [pod] = _pods(kit)
    node = pod["spec"]["nodeName"]
    kube_cluster.kill_node(node)
    try:
        until(lambda: _runs(handle, 2), 200)
        assert kit.api.get("Pod", handle.status().ranks[0].machine)["spec"]["nodeName"] != node
        handle.delete()
    finally:
        kube_cluster.revive_node(node)
    assert lab.output() == {"attempts": "1\n2\n"}
