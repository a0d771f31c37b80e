"""Listing many tasks takes a handful of calls; what groups do not tell, the store does."""

from __future__ import annotations

from collections import Counter

import pytest

import sojourn
from sojourn import api
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.cloud import AwsCloud
from sojourn.clouds.vm.on_machine import marks
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.report import Outcome, Report
from sojourn.core.status import State, Status
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User, allow
from tests.support.waiting import until

_ENDED = {"sojourn:marked": "yes", "sojourn:rank:0": "succeeded 1 0"}
_FAILED = {"sojourn:marked": "yes", "sojourn:rank:0": "failed 2 3 it exited with 3"}
_STOPPED = {"sojourn:marked": "yes", "sojourn:stopped": "yes"}


def _at_a_glance(id: TaskId) -> Status | None:
    cloud = AwsCloud(Account())
    assert id in list(cloud.tasks(Context()))
    return cloud.states(Context(), [id]).get(id)


def test_listing_200_tasks_takes_at_most_5_calls(laptop: SimAWS, user: User) -> None:
    user.make_template()
    kinds = [_ENDED] * 100 + [_FAILED] * 50 + [_STOPPED] * 50
    for number, tags in enumerate(kinds):
        task = user.make_task(f"task-{number}", tags)
        user.make_role(str(task))
    laptop.calls.clear()

    seen = api.overview()

    assert Counter(status.state for _, status in seen) == {
        State.SUCCEEDED: 100,
        State.FAILED: 50,
        State.STOPPED: 50,
    }
    assert [call.name for call in laptop.calls] == [
        "s3:ListBuckets",
        "iam:ListRoles",
        "autoscaling:DescribeAutoScalingGroups",
        "autoscaling:DescribeAutoScalingGroups",
    ]


def test_tasks_that_have_not_ended_are_no_garbage_at_a_glance(laptop: SimAWS, user: User) -> None:
    user.make_template()
    for number in range(20):
        user.make_task(f"task-{number}", {}, desired=1)
    until(lambda: len(laptop.instances()) == 20)
    laptop.calls.clear()
    assert api.gc() == []
    assert len(laptop.calls) <= 3


def test_a_glance_tells_how_it_ended(laptop: SimAWS, user: User) -> None:
    user.make_template()
    status = _at_a_glance(user.make_task("a", _FAILED))
    assert status
    assert (status.state, status.exit_code, status.reason) == (
        State.FAILED,
        3,
        "it exited with 3",
    )
    assert status.ranks[0].attempt == 2


def test_a_machine_in_service_counts_as_running(laptop: SimAWS, user: User) -> None:
    user.make_template()
    task = user.make_task("a", {}, desired=1)

    def state() -> State | None:
        status = _at_a_glance(task)
        return status.state if status else None

    until(lambda: state() is State.RUNNING)


def test_a_task_without_a_machine_waits(laptop: SimAWS, user: User) -> None:
    laptop.capacity(None, None, False)
    user.make_template()
    status = _at_a_glance(user.make_task("a", {}, desired=1))
    assert status
    assert (status.state, status.reason) == (State.QUEUED, "waiting for a machine")


def test_a_bucket_without_a_group_is_an_unfinished_creation(laptop: SimAWS, user: User) -> None:
    task = TaskId.deterministic("a")
    user.make_bucket(str(task))
    status = _at_a_glance(task)
    assert status
    assert "creation did not finish" in status.reason


@pytest.mark.parametrize(
    ("tags", "most"),
    [
        ({}, 1),  # machines that cannot tell, or did not
        ({"sojourn:marked": "yes"}, 1),  # a machine that was killed, or a deadline
        ({"sojourn:stopped": "yes"}, 1),
        (_ENDED, 2),
        ({**_ENDED, "sojourn:rank:0": "glorious 1 0"}, 1),
    ],
)
def test_what_the_group_does_not_tell_needs_a_closer_look(
    laptop: SimAWS, user: User, tags: dict[str, str], most: int
) -> None:
    user.make_template()
    assert _at_a_glance(user.make_task("a", tags, most=most)) is None


def test_the_closer_look_is_at_that_task_only(laptop: SimAWS, user: User) -> None:
    user.make_template()
    ended = user.make_task("ended", _ENDED)
    killed = user.make_task("killed", {"sojourn:marked": "yes"})
    laptop.calls.clear()
    seen = {handle.id: status for handle, status in api.overview()}
    assert seen[str(ended)].state is State.SUCCEEDED
    assert "creation did not finish" in seen[str(killed)].reason  # there is no task in it
    assert "s3:GetObject" in {call.name for call in laptop.calls}


def test_tasks_of_several_regions_are_asked_where_they_are(laptop: SimAWS, user: User) -> None:
    for region in ("us-west-1", "eu-west-1"):
        there = user.in_region(region)
        there.make_template()
        there.make_task(region, _ENDED)
        there.close()
    laptop.calls.clear()
    assert [status.state for _, status in api.overview()] == [State.SUCCEEDED] * 2
    assert [(call.operation, call.region) for call in laptop.calls] == [
        ("ListBuckets", "us-east-1"),
        ("ListRoles", "us-east-1"),
        ("DescribeAutoScalingGroups", "eu-west-1"),
        ("DescribeAutoScalingGroups", "us-west-1"),
    ]


def test_tasks_in_one_bucket_of_the_user_are_found_together(laptop: SimAWS, user: User) -> None:
    user.make_bucket("a-bucket")
    storage = sojourn.Storage(container="a-bucket")
    handles = [
        sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws", name=name, storage=storage))
        for name in ("one", "two", "three")
    ]
    laptop.calls.clear()
    seen = api.overview()
    names = Counter(call.name for call in laptop.calls)
    for handle in handles:
        handle.delete(fetch=False)
    user.remove_bucket("a-bucket")
    assert sorted(handle.id for handle, _ in seen) == sorted(handle.id for handle in handles)
    assert names["s3:HeadBucket"] <= 2  # in its own region, too
    assert names["ec2:DescribeSecurityGroups"] == 4  # regions
    assert names["autoscaling:DescribeAutoScalingGroups"] == 1


def test_who_may_not_list_roles_still_sees_tasks(
    laptop: SimAWS, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.make_template()
    user.make_task("a", _ENDED)
    policy = allow("s3:*", "autoscaling:*", "ec2:Describe*")
    for name, value in laptop.user(policy).items():
        monkeypatch.setenv(name, value)
    assert [status.state for _, status in api.overview()] == [State.SUCCEEDED]


def test_a_bucket_whose_name_only_looks_like_an_id_is_no_task(laptop: SimAWS, user: User) -> None:
    user.make_bucket("tpi-somebody-aaaaaaaa-bbbbbbbb")
    user.make_bucket("tpi-other")
    assert api.overview() == []


def test_stop_and_start_show_in_the_list(laptop: SimAWS) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws"))
    handle.stop()
    laptop.calls.clear()
    [(_, status)] = api.overview()
    assert status == handle.status()
    assert status.state is State.STOPPED
    handle.start()
    [(_, status)] = api.overview()
    assert not status.state.ended
    handle.delete(fetch=False)
    assert api.overview() == []
    assert laptop.inventory() == []


def test_one_status_takes_few_calls(laptop: SimAWS) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\ntrue", cloud="aws"))
    laptop.calls.clear()
    handle.status()
    names = Counter(call.name for call in laptop.calls)
    handle.delete(fetch=False)
    assert sum(names.values()) <= 8, names


def test_marks_come_back_as_they_were_written() -> None:
    reports = [
        Report(0, 1, Outcome.SUCCEEDED, "", 0),
        Report(1, 3, Outcome.FAILED, "it was ended by signal 9 (SIGKILL)", -9),
        Report(2, 1, Outcome.TIMED_OUT, "exceeded the timeout of 5 seconds"),
        Report(3, 1, Outcome.PREEMPTED, "a notice"),
        Report(4, 1, Outcome.FAILED, "ärger: " + "x" * 500, 1),
    ]
    tags = marks.tags_of(reports)
    assert all(len(value) <= 256 and value.isascii() for value in tags.values())
    read = marks.read({**tags, "Name": "a", "sojourn:rank:x": "succeeded 1 0"})
    assert sorted(read) == [0, 1, 2, 4]
    assert read[0] == reports[0]
    assert (read[1].outcome, read[1].attempt, read[1].exit_code) == (Outcome.FAILED, 3, -9)
    assert read[2] == reports[2]
