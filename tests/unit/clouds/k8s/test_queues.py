"""Queues of other schedulers: how pods get into them, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.k8s.cloud import KubernetesCloud
from sojourn.clouds.k8s.objects import TaskObjects
from sojourn.clouds.k8s.pod import Place, machine_template, store_template
from sojourn.clouds.k8s.queues import QueueGroup, check_queues
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput
from sojourn.core.gang import Mpi
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.unit.clouds.k8s.cluster import MemoryApi

_ID = TaskId.deterministic("test")
_CLAIM = Place(claim="x", folder="x")


class _Serving:
    """An API server with these kinds."""

    def __init__(self, *kinds: str) -> None:
        self._kinds = kinds

    def serves(self, kind: str) -> bool:
        return kind in self._kinds


def _task(**fields: Any) -> Task:
    given = {"parallelism": 3, "cloud": "k8s", "options": {"queue": "night"}, **fields}
    return Task(script="#!/bin/sh\n", **given)


def _template(task: Task) -> dict[str, Any]:
    return machine_template(_ID, task, 0, _CLAIM, spot=False, restricted=False)


@pytest.mark.parametrize("fields", [{"gang": True}, {"mpi": Mpi()}])
def test_the_pods_of_a_gang_are_one_group(fields: Any) -> None:
    template = _template(_task(**fields))
    assert template["spec"]["schedulerName"] == "volcano"
    annotations = template["metadata"]["annotations"]
    assert annotations["scheduling.k8s.io/group-name"] == f"{_ID}-gang"
    api = MemoryApi()
    api.answers = {"PodGroup": lambda body: body}
    QueueGroup(TaskObjects(api, _ID, _task(**fields))).create(Context())  # type: ignore[arg-type]
    [(_, group)] = api.created
    assert group["metadata"]["name"] == f"{_ID}-gang"
    assert group["spec"] == {"minMember": 3, "queue": "night"}


def test_ranks_that_need_no_others_wait_alone() -> None:
    annotations = _template(_task())["metadata"]["annotations"]
    assert annotations["scheduling.volcano.sh/queue-name"] == "night"
    assert "scheduling.k8s.io/group-name" not in annotations


def test_a_pod_for_transfers_does_not_wait() -> None:
    made = store_template(_ID, _task(), _CLAIM, spot=False, restricted=False)
    assert "schedulerName" not in made["spec"]


def test_without_a_queue_there_is_nothing_of_it() -> None:
    template = _template(_task(options={}, gang=True))
    assert "schedulerName" not in template["spec"]
    assert not any("scheduling" in key for key in template["metadata"]["annotations"])
    titles = [r.title for r in KubernetesCloud().resources(_ID, _task(options={}, gang=True))]
    assert not any("PodGroup" in title for title in titles)
    titles = [r.title for r in KubernetesCloud().resources(_ID, _task(gang=True))]
    assert f"PodGroup {_ID}-gang" in titles


@pytest.mark.parametrize(
    ("kinds", "why"),
    [
        ((), "needs Volcano"),
        (("LocalQueue",), "Kueue starts and stops Jobs itself"),
    ],
)
def test_what_cannot_be_is_refused(kinds: tuple[str, ...], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        check_queues(_Serving(*kinds))  # type: ignore[arg-type]


def test_both_schedulers_may_be_there() -> None:
    check_queues(_Serving("PodGroup", "LocalQueue"))  # type: ignore[arg-type]
