"""Why a machine does not come: the true reason, and no trace when it is given up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.core.errors import CapacityError, InvalidInput, QuotaError, SojournError
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.lab import Lab
from tests.kube import images
from tests.kube.fixtures import KubeCluster
from tests.support.waiting import until


def _reason(handle: sojourn.Handle) -> str:
    return handle.status().reason


def _without_data(lab: Lab, script: str, **more: Any) -> sojourn.Handle:
    return lab.create(script, storage=sojourn.Storage(), **more)


def test_an_image_that_does_not_exist(lab: Lab) -> None:
    handle = _without_data(lab, "true", image="localhost/absent:1")
    until(lambda: "could not pull image localhost/absent:1" in _reason(handle))
    handle.delete()


def test_an_image_that_does_not_exist_and_then_does(lab: Lab, kube_cluster: KubeCluster) -> None:
    handle = _without_data(lab, "#!/bin/sh\ntrue", image="localhost/late:1")
    until(lambda: "could not pull image localhost/late:1" in _reason(handle))
    kube_cluster.tag_image(images.SHELL, "localhost/late:1")
    try:
        assert handle.wait().status is sojourn.State.SUCCEEDED
        handle.delete()
    finally:
        kube_cluster.untag_image("localhost/late:1")


def test_no_node_has_the_label(lab: Lab) -> None:
    handle = _without_data(lab, "true", region="foo=bar,goo=baz")
    until(lambda: "no node fits" in _reason(handle))
    handle.delete()


def test_nodes_are_selected_by_region(lab: Lab, kit: KubernetesKit) -> None:
    """The example of the old provider's page."""
    node = kit.api.list("Node")[0]["metadata"]["name"]
    kit.api.merge("Node", node, {"metadata": {"labels": {"foo": "bar", "goo": "baz"}}})
    try:
        handle = _without_data(lab, "true", region="foo=bar,goo=baz")
        assert handle.wait().status is sojourn.State.SUCCEEDED
        [pod] = kit.api.list("Pod", "sojourn/role=machine")
        assert pod["spec"]["nodeName"] == node
        handle.delete()
    finally:
        kit.api.merge("Node", node, {"metadata": {"labels": {"foo": None, "goo": None}}})


def test_no_node_has_such_gpus(lab: Lab) -> None:
    handle = _without_data(lab, "true", machine="m+t4")
    until(lambda: "no node fits" in _reason(handle))
    handle.delete()


def test_a_quota_is_told_before_anything_is_made(lab: Lab, kit: KubernetesKit) -> None:
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"limits.memory": "10M"}}}
    kit.api._call("quota", "POST", _quotas(kit), {}, quota, "application/json")

    def is_known() -> bool:
        found = kit.api._call("quota", "GET", f"{_quotas(kit)}/small", {}, None, "application/json")
        return "used" in found.get("status", {})

    until(is_known)
    with pytest.raises(QuotaError, match="exceeded quota"):
        lab.create("true")
    assert kit.leaks() == []


def _quotas(kit: KubernetesKit) -> str:
    return f"/api/v1/namespaces/{kit.api.namespace}/resourcequotas"


def test_a_storage_class_that_is_not_there(lab: Lab, kit: KubernetesKit) -> None:
    with pytest.raises(InvalidInput, match="storage class 'absent' not found"):
        lab.create("true", options={"storage_class": "absent"})
    assert kit.leaks() == []


def test_a_volume_that_cannot_be_shared(lab: Lab, kit: KubernetesKit) -> None:
    """Nobody knows before that this class has no volumes for several machines."""
    with pytest.raises(SojournError, match=r"ReadWriteMany|is not bound"):
        lab.create("true", parallelism=2, options={"storage_class": "node"})
    assert kit.leaks() == []


def test_a_volume_that_cannot_be_shared_and_nothing_to_upload(lab: Lab, kit: KubernetesKit) -> None:
    """Whoever waits for the task learns it, and it is as a creation that failed."""
    given: dict[str, Any] = {
        "parallelism": 3,
        "storage": sojourn.Storage(),
        "options": {"storage_class": "node"},
    }
    with pytest.raises(CapacityError, match="ReadWriteMany") as caught:
        lab.run("true", **given)
    assert "Everything created so far was removed" in caught.value.hint
    assert kit.leaks() == []
    with pytest.raises(CapacityError, match="ReadWriteMany") as caught:
        lab.run("true", keep_failed=True, **given)
    (left,) = sojourn.list_tasks()
    assert f"sojourn delete {left.id}" in caught.value.hint
    left.delete(force=True)


def test_an_account_that_is_not_there(lab: Lab, kit: KubernetesKit) -> None:
    with pytest.raises(SojournError, match="absent"):
        lab.create("true", permission_set="absent")
    assert kit.leaks() == []


def test_a_claim_that_is_not_there(lab: Lab, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="claim absent not found"):
        lab.create("true", storage=sojourn.Storage(container="absent/path"))


def test_events_are_the_clusters(lab: Lab) -> None:
    handle = lab.create("true")
    handle.wait()
    codes = {event.code for event in handle.events()}
    handle.delete()
    assert {"SuccessfulCreate", "Scheduled", "Started"} <= codes
