"""What a script can do with its machine's role, and that its owner's verbs do not care."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

import sojourn
from sojourn import api
from sojourn.core.status import State
from sojourn.engine import lifecycle
from tests.simcloud.aws import backends, callers
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User, allow
from tests.support.waiting import patience, until
from tests.unit.clouds.vm.storing import end_scripts, listed

_REGION = "us-west-1"
_ENDED = {"sojourn:rank:0": "succeeded 1 0", "sojourn:rank:1": "succeeded 1 0"}


@pytest.fixture
def handle(laptop: SimAWS) -> Iterator[sojourn.Handle]:
    """A task with two machines that run."""
    made = sojourn.create(sojourn.Task("#!/bin/sh\n", cloud="aws", parallelism=2))
    _in_service(laptop, 2)
    yield made
    assert laptop.inventory() == []


def _in_service(sim: SimAWS, count: int) -> None:
    until(lambda: len(_running(sim)) == count)


def _running(sim: SimAWS) -> list[str]:
    return [each.id for each in sim.instances() if each.state == "running"]


def _holder(sim: SimAWS, role: str) -> User:
    """Somebody with the credentials that a machine of this role has."""
    keys = callers.make_credentials(role, _running(sim)[0], _REGION, 3600)
    given = {
        "AWS_ACCESS_KEY_ID": keys.key_id,
        "AWS_SECRET_ACCESS_KEY": keys.secret,
        "AWS_SESSION_TOKEN": keys.token,
    }
    return User({**sim.environment(), **given})


@pytest.fixture
def holder(laptop: SimAWS, handle: sojourn.Handle) -> Iterator[User]:
    user = _holder(laptop, handle.id)
    yield user
    user.close()


def _soon() -> datetime:
    return datetime.now(timezone.utc) + timedelta(minutes=5)


def _tag(id: str, key: str, value: str) -> dict[str, Any]:
    about = {"ResourceId": id, "ResourceType": "auto-scaling-group"}
    return {**about, "Key": key, "Value": value, "PropagateAtLaunch": True}


def _refused(call: Callable[..., object], **given: Any) -> None:
    with pytest.raises(ClientError) as caught:
        call(**given)
    assert caught.value.response["Error"]["Code"] == "AccessDenied"


def test_a_role_cannot_make_its_group_want_machines_or_put_off_its_end(
    laptop: SimAWS, handle: sojourn.Handle, holder: User
) -> None:
    group = {"AutoScalingGroupName": handle.id}
    schedule = partial(holder.autoscaling.put_scheduled_update_group_action, StartTime=_soon())
    _refused(schedule, **group, ScheduledActionName="deadline", DesiredCapacity=2)
    _refused(schedule, **group, ScheduledActionName="mine", MinSize=2)
    for call, more in (
        (holder.autoscaling.update_auto_scaling_group, {"MinSize": 2}),
        (holder.autoscaling.set_desired_capacity, {"DesiredCapacity": 2}),
        (holder.autoscaling.suspend_processes, {"ScalingProcesses": ["ScheduledActions"]}),
        (holder.autoscaling.resume_processes, {"ScalingProcesses": ["Launch"]}),
        (holder.autoscaling.delete_auto_scaling_group, {"ForceDelete": True}),
    ):
        _refused(call, **group, **more)
    handle.delete(fetch=False)


def test_marks_of_a_machine_do_not_end_a_task_that_has_machines(
    laptop: SimAWS, handle: sojourn.Handle, holder: User
) -> None:
    holder.autoscaling.create_or_update_tags(
        Tags=[_tag(handle.id, key, value) for key, value in _ENDED.items()]
    )
    [(_, status)] = api.overview()
    assert not status.state.ended
    handle.stop()
    assert _running(laptop) == []
    handle.delete(fetch=False)


def test_a_list_tells_that_scripts_have_ended_whose_results_cannot_be_stored(
    laptop: SimAWS, handle: sojourn.Handle, holder: User
) -> None:
    told = end_scripts(handle)
    holder.autoscaling.create_or_update_tags(
        Tags=[_tag(handle.id, key, value) for key, value in told.items()]
    )
    assert (handle.status().state, listed()) == (State.STORING, State.STORING)
    holder.autoscaling.create_or_update_tags(
        Tags=[_tag(handle.id, key, "succeeded 1 0") for key in list(told)[:1]]
    )
    assert listed() is State.STORING  # of the other rank
    handle.delete(fetch=False)


def test_a_group_full_of_marks_is_stopped_and_deleted(
    laptop: SimAWS, handle: sojourn.Handle, holder: User
) -> None:
    marks = [_tag(handle.id, f"sojourn:rank:{'9' * n}", "x" * 200) for n in range(1, 40)]
    holder.autoscaling.create_or_update_tags(Tags=marks)
    laptop.fail("autoscaling:CreateOrUpdateTags", code="ValidationError", status=400)
    assert not handle.status().state.ended
    assert [status.state.ended for _, status in api.overview()] == [False]
    handle.stop()
    handle.delete(fetch=False)


def test_a_machine_that_leaves_again_and_again_only_shrinks_its_group(
    laptop: SimAWS, handle: sojourn.Handle, holder: User
) -> None:
    for machine, fewer in zip(_running(laptop), (False, True), strict=True):
        holder.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=machine, ShouldDecrementDesiredCapacity=fewer
        )
    until(lambda: len(_running(laptop)) == 1)
    handle.stop()
    assert _running(laptop) == []
    handle.delete(fetch=False)


@pytest.fixture
def scheduling(laptop: SimAWS) -> Iterator[tuple[sojourn.Handle, User]]:
    """A task whose role is the user's and lets it schedule changes, as our pages once said."""
    iam = backends.iam()
    iam.create_role("mine", "{}", "/", None, "", [], 3600)
    iam.put_role_policy("mine", "all", json.dumps(allow("s3:*", "autoscaling:*", "ec2:Describe*")))
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    before = laptop.inventory()
    made = sojourn.create(
        sojourn.Task("#!/bin/sh\n", cloud="aws", parallelism=3, permission_set=profile.arn)
    )
    _in_service(laptop, 3)
    holder = _holder(laptop, "mine")
    yield made, holder
    holder.close()
    assert laptop.inventory() == before


@pytest.mark.parametrize("verb", ["stop", "delete", "delete --force"])
def test_a_least_size_that_a_script_set_does_not_keep_its_machines(
    laptop: SimAWS, scheduling: tuple[sojourn.Handle, User], verb: str
) -> None:
    handle, holder = scheduling
    schedule = holder.autoscaling.put_scheduled_update_group_action
    schedule(
        AutoScalingGroupName=handle.id,
        ScheduledActionName="mine",
        StartTime=_soon(),
        MinSize=3,
        MaxSize=9,
    )
    laptop.advance(600)
    until(lambda: _group(holder, handle.id)["MinSize"] == 3)
    if verb == "stop":
        handle.stop()
        assert _running(laptop) == []
        assert handle.status().state is State.STOPPED
    handle.delete(fetch=False, force=verb.endswith("force"))


def test_what_a_script_scheduled_does_not_start_machines_after_a_stop(
    laptop: SimAWS, scheduling: tuple[sojourn.Handle, User]
) -> None:
    handle, holder = scheduling
    holder.autoscaling.put_scheduled_update_group_action(
        AutoScalingGroupName=handle.id,
        ScheduledActionName="mine",
        StartTime=_soon(),
        MinSize=3,
        DesiredCapacity=3,
    )
    handle.stop()
    laptop.advance(600)
    until(lambda: "mine" not in _scheduled(holder))
    group = _group(holder, handle.id)
    assert (group["MinSize"], group["DesiredCapacity"], _running(laptop)) == (0, 0, [])
    handle.start()
    _in_service(laptop, 3)
    laptop.advance(9 * 86400)
    until(lambda: _group(holder, handle.id)["DesiredCapacity"] == 0)  # armed again
    laptop.advance(600)  # no machine answers here: each may take its time for its last words
    until(lambda: _running(laptop) == [])
    handle.delete(fetch=False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "_FLUSH_WITHIN", patience(20))


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("by", ["protection", "suspension", "both"])
def test_machines_that_a_script_keeps_in_their_group_are_taken_away(
    laptop: SimAWS, scheduling: tuple[sojourn.Handle, User], by: str
) -> None:
    handle, holder = scheduling
    if by != "suspension":
        holder.autoscaling.set_instance_protection(
            AutoScalingGroupName=handle.id,
            InstanceIds=_running(laptop)[:2],
            ProtectedFromScaleIn=True,
        )
    if by != "protection":
        holder.autoscaling.suspend_processes(
            AutoScalingGroupName=handle.id, ScalingProcesses=["Terminate"]
        )
    handle.stop()
    assert (_running(laptop), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)


def _group(user: User, name: str) -> Any:
    found = user.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    return found["AutoScalingGroups"][0]


def _scheduled(user: User) -> list[str]:
    found = user.autoscaling.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    return [str(each["ScheduledActionName"]) for each in found]


def test_a_group_that_cannot_be_stopped_is_deleted_by_force(
    laptop: SimAWS, handle: sojourn.Handle
) -> None:
    laptop.fail("autoscaling:SetDesiredCapacity", code="ValidationError", status=400, times=100)
    with pytest.raises(sojourn.SojournError):
        handle.delete(fetch=False)
    handle.delete(fetch=False, force=True)


def test_a_machine_that_wants_others_while_it_is_stopped_does_not_get_them(
    laptop: SimAWS, scheduling: tuple[sojourn.Handle, User]
) -> None:
    handle, holder = scheduling
    tries = iter(range(2))

    def look(call: Any) -> None:
        """Right after it was told to want none, the group is told to want some."""
        looked = call.name == "autoscaling:DescribeAutoScalingGroups"
        if looked and stopped(handle.id) and next(tries, None) is not None:
            holder.autoscaling.set_desired_capacity(
                AutoScalingGroupName=handle.id, DesiredCapacity=3
            )

    def stopped(name: str) -> bool:
        return any(each.name == name and not each.desired for each in laptop._groups.all())

    laptop.watch(look)
    handle.stop()
    assert next(tries, None) is None
    assert (_running(laptop), handle.status().state) == ([], State.STOPPED)
    handle.delete(fetch=False)
