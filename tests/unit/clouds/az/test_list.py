"""Listing many tasks takes a handful of calls; what scale sets do not tell, the store does."""

from __future__ import annotations

from collections import Counter

import pytest

from sojourn import api
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.cloud import AzureCloud
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.status import State, Status
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User, scale_set
from tests.support.waiting import until

_ENDED = {"sojourn:marked": "yes", "sojourn:rank:0": "succeeded 1 0"}
_FAILED = {"sojourn:marked": "yes", "sojourn:rank:0": "failed 2 3 it exited with 3"}
_STOPPED = {"sojourn:marked": "yes", "sojourn:stopped": "yes"}


class Maker:
    """Makes what tasks leave, without tasks."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._subnet = user.make_network(user.make_group())

    def task(self, name: str, tags: dict[str, str], capacity: int = 0, ranks: int = 1) -> TaskId:
        id = TaskId.deterministic(name)  # noqa: A001
        group = f"resourceGroups/{id}"
        marks = {"sojourn:id": str(id), "sojourn:ranks": str(ranks), **tags}
        self._user.put(group, {"location": "eastus", "tags": {"sojourn:id": str(id)}})
        body = {**scale_set(self._subnet, capacity), "tags": marks}
        path = f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{id}"
        self._user.put(path, body)
        return id


@pytest.fixture
def maker(laptop: SimAzure, user: User) -> Maker:
    laptop.timing.scale_set = 0.0
    return Maker(user)


def _at_a_glance(id: TaskId) -> Status | None:
    cloud = AzureCloud(Account())
    assert id in list(cloud.tasks(Context()))
    return cloud.states(Context(), [id]).get(id)


def test_listing_200_tasks_takes_at_most_5_calls(laptop: SimAzure, maker: Maker) -> None:
    kinds = [_ENDED] * 100 + [_FAILED] * 50 + [_STOPPED] * 50
    for number, tags in enumerate(kinds):
        maker.task(f"task-{number}", tags)
    laptop.calls.clear()
    seen = api.overview()
    assert Counter(status.state for _, status in seen) == {
        State.SUCCEEDED: 100,
        State.FAILED: 50,
        State.STOPPED: 50,
    }
    names = [call.name for call in laptop.calls if not call.name.startswith("entra.")]
    assert set(names) == {"resourceGroups.list", "virtualMachineScaleSets.listAll"}
    assert len(names) <= 5


def test_tasks_that_have_not_ended_are_no_garbage_at_a_glance(
    laptop: SimAzure, maker: Maker
) -> None:
    for number in range(20):
        maker.task(f"task-{number}", {}, capacity=1)
    until(lambda: len(laptop.instances()) == 20)
    laptop.calls.clear()
    assert api.gc() == []
    assert len([call for call in laptop.calls if not call.name.startswith("entra.")]) <= 3


def test_a_glance_tells_how_it_ended(maker: Maker) -> None:
    status = _at_a_glance(maker.task("a", _FAILED))
    assert status
    assert (status.state, status.exit_code, status.reason) == (
        State.FAILED,
        3,
        "it exited with 3",
    )
    assert status.ranks[0].attempt == 2


def test_a_machine_that_is_there_counts_as_running(maker: Maker) -> None:
    status = _at_a_glance(maker.task("a", {}, capacity=1))
    assert status
    assert status.state is State.RUNNING


def test_who_lost_a_machine_is_looked_at_closer(maker: Maker) -> None:
    assert _at_a_glance(maker.task("a", {}, capacity=1, ranks=2)) is None
    assert _at_a_glance(maker.task("b", {}, capacity=0)) is None


def test_one_that_could_not_be_made_is_looked_at_closer(
    laptop: SimAzure, maker: Maker, user: User
) -> None:
    id = maker.task("a", {})  # noqa: A001
    laptop.capacity(None, None, False)
    path = f"resourceGroups/{id}/providers/Microsoft.Compute/virtualMachineScaleSets/{id}"
    answer = user.call("PATCH", path, {"sku": {"capacity": 1}})
    assert answer.status_code == 200
    until(lambda: user.get(path)["properties"]["provisioningState"] == "Failed")
    assert _at_a_glance(id) is None


def test_a_group_without_a_scale_set_is_incomplete(maker: Maker, user: User) -> None:
    id = TaskId.deterministic("half")  # noqa: A001
    user.put(f"resourceGroups/{id}", {"location": "eastus", "tags": {"sojourn:id": str(id)}})
    status = _at_a_glance(id)
    assert status
    assert "creation did not finish" in status.reason


def test_groups_of_others_are_no_tasks(laptop: SimAzure, user: User) -> None:
    id = TaskId.deterministic("mine")  # noqa: A001
    user.put(f"resourceGroups/{id}", {"location": "eastus", "tags": {}})
    user.put("resourceGroups/x", {"location": "eastus", "tags": {"sojourn:id": str(id)}})
    assert list(AzureCloud(Account()).tasks(Context())) == []
