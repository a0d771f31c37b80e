"""Listing many tasks takes a handful of calls; what groups do not tell, the store does."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import sojourn
from sojourn import api
from sojourn.clouds.gcp import tags
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.cloud import GoogleCloud
from sojourn.clouds.gcp.on_machine.groupmarks import patch_of
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.status import State, Status
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import ZONE, User
from tests.support.waiting import until

_ENDED = {"sojourn-marked": "yes", "sojourn-rank-0": "succeeded 1 0"}
_FAILED = {"sojourn-marked": "yes", "sojourn-rank-0": "failed 2 3 it exited with 3"}
_STOPPED = {"sojourn-marked": "yes", "sojourn-stopped": "yes"}


def _make_bucket(user: User, name: str, **labels: str) -> TaskId:
    task = TaskId.deterministic(name)
    user.make_bucket(str(task), labels={tags.ZONE: ZONE, **labels})
    return task


def _make(
    user: User, name: str, marks: dict[str, str], *, ranks: int = 1, size: int = 0, **more: Any
) -> TaskId:
    """A task's bucket and its group, as far as the list looks at them."""
    task = _make_bucket(user, name)
    told = {"sojourn-ranks": str(ranks), **marks}
    user.make_group(size, str(task), baseInstanceName=str(task), **patch_of(told), **more)
    return task


def _at_a_glance(task: TaskId) -> Status | None:
    cloud = GoogleCloud(Account())
    assert task in list(cloud.tasks(Context()))
    return cloud.states(Context(), [task]).get(task)


def test_listing_200_tasks_takes_at_most_5_calls(project: SimGCP, user: User) -> None:
    project.timing.operation = 0.0
    user.make_template()
    kinds = [_ENDED] * 100 + [_FAILED] * 50 + [_STOPPED] * 50
    for number, marks in enumerate(kinds):
        _make(user, f"task-{number}", marks)
    project.calls.clear()

    seen = api.overview()

    assert Counter(status.state for _, status in seen) == {
        State.SUCCEEDED: 100,
        State.FAILED: 50,
        State.STOPPED: 50,
    }
    assert [call.name for call in project.calls if call.service != "oauth2"] == [
        "storage:buckets.list",
        "compute:firewalls.list",
        "compute:instanceGroupManagers.aggregatedList",
        "compute:instances.aggregatedList",
    ]


def test_a_glance_tells_how_it_ended(project: SimGCP, user: User) -> None:
    user.make_template()
    status = _at_a_glance(_make(user, "a", _FAILED))
    assert status
    assert (status.state, status.exit_code, status.reason) == (State.FAILED, 3, "it exited with 3")
    assert status.ranks[0].attempt == 2


def test_a_machine_in_service_counts_as_running(project: SimGCP, user: User) -> None:
    user.make_template()
    task = _make(user, "a", {}, size=1)

    def state() -> State | None:
        status = _at_a_glance(task)
        return status.state if status else None

    until(lambda: state() is State.RUNNING)
    project.calls.clear()
    assert api.gc() == []  # what has not ended is no garbage, at a glance
    assert len(project.calls) <= 5


def test_a_task_without_a_machine_waits(project: SimGCP, user: User) -> None:
    project.capacity(None, None, False)
    user.make_template()
    status = _at_a_glance(_make(user, "a", {}, size=1))
    assert status
    assert (status.state, status.reason) == (State.QUEUED, "waiting for a machine")


def test_a_bucket_without_a_group_is_an_unfinished_creation(project: SimGCP, user: User) -> None:
    status = _at_a_glance(_make_bucket(user, "a"))
    assert status
    assert "creation did not finish" in status.reason


@pytest.mark.parametrize(
    ("marks", "ranks"),
    [
        ({}, 1),  # machines that cannot tell, or did not
        ({"sojourn-marked": "yes"}, 1),  # a machine that was killed
        ({"sojourn-stopped": "yes"}, 1),
        (_ENDED, 2),
        ({**_ENDED, "sojourn-rank-0": "glorious 1 0"}, 1),
    ],
)
def test_what_the_group_does_not_tell_needs_a_closer_look(
    project: SimGCP, user: User, marks: dict[str, str], ranks: int
) -> None:
    user.make_template()
    assert _at_a_glance(_make(user, "a", marks, ranks=ranks)) is None


def test_the_closer_look_is_at_that_task_only(project: SimGCP, user: User) -> None:
    user.make_template()
    ended = _make(user, "ended", _ENDED)
    killed = _make(user, "killed", {"sojourn-marked": "yes"})
    project.calls.clear()
    seen = {handle.id: status for handle, status in api.overview()}
    assert seen[str(ended)].state is State.SUCCEEDED
    assert "creation did not finish" in seen[str(killed)].reason  # there is no task in it
    looked = [call.places["bucket"] for call in project.calls if call.operation == "objects.get"]
    assert set(looked) == {str(killed)}


def test_tasks_of_several_zones_are_found_by_the_same_calls(project: SimGCP) -> None:
    handles = [
        sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="gcp", region=region))
        for region in ("us-west", "eu-west")
    ]
    project.calls.clear()
    seen = api.overview()
    assert len([call for call in project.calls if call.service != "oauth2"]) == 4
    assert sorted(handle.id for handle, _ in seen) == sorted(handle.id for handle in handles)
    for handle in handles:
        handle.delete(fetch=False)
    assert project.inventory() == []


@pytest.mark.parametrize("name", ["tpi-somebody-aaaaaaaa-bbbbbbbb", "tpi-other"])
def test_a_bucket_whose_name_only_looks_like_an_id_is_no_task(
    project: SimGCP, user: User, name: str
) -> None:
    user.make_bucket(name)
    assert api.overview() == []


def test_a_firewall_rule_of_somebody_else_is_no_task(project: SimGCP, user: User) -> None:
    task = TaskId.deterministic("theirs")
    rule = {"name": str(task), "description": "mine", "allowed": [{"IPProtocol": "icmp"}]}
    user.post("global/firewalls", rule)
    assert api.overview() == []


def test_stop_and_start_show_in_the_list(project: SimGCP) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="gcp"))
    handle.stop()
    [(_, status)] = api.overview()
    assert status == handle.status()
    assert status.state is State.STOPPED
    handle.start()
    [(_, status)] = api.overview()
    assert not status.state.ended
    handle.delete(fetch=False)
    assert api.overview() == []
    assert project.inventory() == []


def test_one_status_takes_few_calls(project: SimGCP) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="gcp"))
    project.calls.clear()
    handle.status()
    names = Counter(call.name for call in project.calls)
    handle.delete(fetch=False)
    assert sum(names.values()) <= 8, names
