"""Groups of a simulated AWS account, without machines: what they do, what they cannot launch."""

from __future__ import annotations

import base64
import json
import math
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.market import Refusal
from tests.simcloud.aws_user import User, refused
from tests.support.waiting import until

# Groups


def test_groups_are_checked_when_they_are_made(user: User) -> None:
    user.make_template()
    wrong = "ValidationError"
    assert "subnet" in refused(wrong, user.make_group, VPCZoneIdentifier="subnet-0123")
    assert "Zone" in refused(wrong, user.make_group, VPCZoneIdentifier=" ")
    refused(wrong, user.make_group, desired=6)
    refused(wrong, user.make_group, MinSize=2, MaxSize=1)
    user.make_group()
    assert "already exists" in refused("AlreadyExists", user.make_group)
    assert "above max value 5" in refused(wrong, user.set_desired, desired=6)
    name = {"AutoScalingGroupName": "missing"}
    for call, given in (
        (user.autoscaling.set_desired_capacity, {"DesiredCapacity": 1}),
        (user.autoscaling.update_auto_scaling_group, {"MaxSize": 1}),
        (user.autoscaling.delete_auto_scaling_group, {}),
        (user.autoscaling.describe_scaling_activities, {}),
    ):
        assert "not found" in refused(wrong, call, **name, **given)
    found = user.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["missing"])
    assert found["AutoScalingGroups"] == []


def test_groups_are_found_by_name_and_tags_in_pages(user: User) -> None:
    user.make_template()
    for number in range(3):
        tags = [{"Key": "number", "Value": str(number)}, {"Key": "ours", "Value": "yes"}]
        user.make_group(AutoScalingGroupName=f"group-{number}", Tags=tags)

    def find(*filters: tuple[str, str], **more: Any) -> list[str]:
        given = [{"Name": name, "Values": [value]} for name, value in filters]
        pages = user.autoscaling.get_paginator("describe_auto_scaling_groups")
        found = pages.paginate(Filters=given, **more)
        return [
            group["AutoScalingGroupName"] for page in found for group in page["AutoScalingGroups"]
        ]

    assert find(("tag:number", "1")) == ["group-1"]
    assert find(("tag-key", "ours"), PaginationConfig={"PageSize": 2}) == [
        f"group-{n}" for n in range(3)
    ]
    assert find(("tag:ours", "yes"), ("tag:number", "2")) == ["group-2"]
    assert find(("tag:ours", "no")) == []
    tag = {
        "ResourceId": "group-0",
        "ResourceType": "auto-scaling-group",
        "PropagateAtLaunch": False,
    }
    user.autoscaling.create_or_update_tags(Tags=[{**tag, "Key": "ours", "Value": "no"}])
    assert find(("tag:ours", "no")) == ["group-0"]


def test_a_group_grows_and_shrinks_and_tells_about_it(user: User) -> None:
    user.make_template()
    user.make_group()
    user.set_desired(2)
    user.in_service(2)
    user.set_desired(1)
    until(lambda: len(user.group()["Instances"]) == 1, 10)
    last, second, first = user.activities()
    for activity in (last, second, first):
        assert activity["StatusCode"] == "Successful"
        assert activity["EndTime"] >= activity["StartTime"]
        assert json.loads(activity["Details"])["Availability Zone"].startswith("us-west-1")
    assert last["Description"].startswith("Terminating EC2 instance: i-")
    assert "shrinking the capacity from 2 to 1" in last["Cause"]
    assert second["Description"].startswith("Launching a new EC2 instance: i-")
    assert "increasing the capacity from 0 to 1" in first["Cause"]


def test_a_group_with_instances_goes_only_by_force_and_not_at_once() -> None:
    with SimAWS(timing=Timing(deletion=30)) as aws:
        user = User(aws.environment())
        user.make_template()
        user.make_group(1)
        [name] = user.in_service(1)
        group = {"AutoScalingGroupName": "a-group"}
        delete = user.autoscaling.delete_auto_scaling_group
        until(lambda: user.activities()[0]["StatusCode"] == "Successful")
        refused("ResourceInUse", delete, **group)
        delete(**group, ForceDelete=True)
        assert user.group()["Status"] == "Delete in progress"
        assert "pending delete" in refused("AlreadyExists", user.make_group)
        assert "pending delete" in refused("ValidationError", user.set_desired, desired=0)
        until(lambda: not user.group()["Instances"])
        assert user.group()["Status"] == "Delete in progress"
        aws.advance(30)
        until(lambda: not user.group())
        past = user.autoscaling.describe_scaling_activities(IncludeDeletedGroups=True)
        assert name in past["Activities"][0]["Description"]
        user.ec2.delete_launch_template(LaunchTemplateName="a-template")
        assert aws.inventory() == []
        user.close()


HOOK = {
    "LifecycleHookName": "a-hook",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "HeartbeatTimeout": 3600,
    "DefaultResult": "CONTINUE",
}


def test_a_hook_holds_a_member_until_it_is_completed_and_another_comes_at_once(
    aws: SimAWS, user: User
) -> None:
    aws.timing.last_words = math.inf
    user.make_template()
    user.make_group(1, LifecycleHookSpecificationList=[HOOK])
    [name] = user.in_service(1)
    action = {
        "AutoScalingGroupName": "a-group",
        "LifecycleHookName": "a-hook",
        "InstanceId": name,
    }
    done = {**action, "LifecycleActionResult": "CONTINUE"}
    complete = user.autoscaling.complete_lifecycle_action
    assert "No active Lifecycle Action" in refused("ValidationError", complete, **done)
    user.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=name, ShouldDecrementDesiredCapacity=False
    )
    [other] = user.in_service(1)
    assert (other != name, user.members("Terminating:Wait")) == (True, [name])
    for _ in range(3):
        aws.advance(3000)
        user.autoscaling.record_lifecycle_action_heartbeat(**action)
    assert user.members("Terminating:Wait") == [name]
    assert aws.instances()[0].state == "running"
    complete(**done)
    until(lambda: [m["InstanceId"] for m in user.group()["Instances"]] == [other])
    assert aws.instances()[0].state == "terminated"


def test_a_hook_that_nobody_completes_ends_by_its_timeout(aws: SimAWS, user: User) -> None:
    aws.timing.last_words = math.inf
    user.make_template(spot=True)
    user.make_group(2, LifecycleHookSpecificationList=[HOOK])
    lost, taken = user.in_service(2)
    aws.interrupt(lost, notice=False)
    user.autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=taken, ShouldDecrementDesiredCapacity=True
    )
    until(lambda: set(user.members("Terminating:Wait")) == {lost, taken})
    user.in_service(1)
    aws.advance(3601)
    until(lambda: len(user.group()["Instances"]) == 1)
    assert user.in_service(1) == [aws.instances()[-1].id]


def test_a_group_that_goes_by_force_waits_for_no_hook(aws: SimAWS, user: User) -> None:
    aws.timing.last_words = math.inf
    user.make_template()
    user.make_group(2, LifecycleHookSpecificationList=[HOOK])
    user.in_service(2)
    user.set_desired(1)
    until(lambda: user.members("Terminating:Wait"))
    user.delete_group()
    assert {instance.state for instance in aws.instances()} == {"terminated"}


def test_a_launch_in_progress_keeps_a_group(aws: SimAWS, user: User) -> None:
    aws.timing.launch = 3600
    user.make_template()
    user.make_group(1)
    until(lambda: user.members("Pending"), 10)
    [name] = user.members("Pending")
    [reservation] = user.ec2.describe_instances(InstanceIds=[name])["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] == "pending"
    delete = user.autoscaling.delete_auto_scaling_group
    refused("ScalingActivityInProgress", delete, AutoScalingGroupName="a-group")
    aws.advance(3600)
    assert user.in_service(1) == [name]


def test_what_is_lost_is_replaced(aws: SimAWS, user: User) -> None:
    user.make_template(spot=True)
    user.make_group(1)
    [first] = user.in_service(1)
    answer = user.ec2.terminate_instances(InstanceIds=[first])["TerminatingInstances"]
    assert answer[0]["PreviousState"]["Name"] == "running"
    assert answer[0]["CurrentState"]["Name"] in ("shutting-down", "terminated")
    until(lambda: user.members() not in ([], [first]), 10)
    [second] = user.members()
    aws.interrupt(second, notice=False)
    until(lambda: user.members() not in ([], [second]), 10)
    [third] = user.members()
    aws.timing.notice = 120
    aws.interrupt(third, notice=True)
    assert user.members() == [third]
    aws.advance(120)
    until(lambda: user.members() not in ([], [third]), 10)
    terminations = [a for a in user.activities() if "Terminating" in a["Description"]]
    assert len(terminations) == 3
    assert all("EC2 health check" in activity["Cause"] for activity in terminations)
    [reservation] = user.ec2.describe_instances(InstanceIds=[second])["Reservations"]
    reason = reservation["Instances"][0]["StateReason"]["Code"]
    assert reason == "Server.SpotInstanceTermination"
    missing = ["i-0123456789abcdef0"]
    refused("InvalidInstanceID.NotFound", user.ec2.terminate_instances, InstanceIds=missing)


def test_an_instance_can_leave_its_group_for_good(user: User) -> None:
    user.make_template()
    user.make_group(2)
    first, second = user.in_service(2)
    leave = user.autoscaling.terminate_instance_in_auto_scaling_group
    answer = leave(InstanceId=first, ShouldDecrementDesiredCapacity=True)["Activity"]
    assert "shrinking the capacity from 2 to 1" in answer["Cause"]
    until(lambda: len(user.group()["Instances"]) == 1, 10)
    assert user.group()["DesiredCapacity"] == 1
    leave(InstanceId=second, ShouldDecrementDesiredCapacity=False)
    until(lambda: user.members() not in ([], [second]), 10)
    user.autoscaling.update_auto_scaling_group(AutoScalingGroupName="a-group", MinSize=1)
    [third] = user.members()
    given = {"InstanceId": third, "ShouldDecrementDesiredCapacity": True}
    assert "minSize" in refused("ValidationError", leave, **given)
    assert "not found" in refused("ValidationError", leave, **{**given, "InstanceId": "i-0123"})


def test_scheduled_actions_come_when_it_is_time(aws: SimAWS, user: User) -> None:
    user.make_template()
    user.make_group(1)
    user.in_service(1)
    put = user.autoscaling.put_scheduled_update_group_action
    later = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=1)
    given = {"AutoScalingGroupName": "a-group", "ScheduledActionName": "stop"}
    past = later - timedelta(hours=2)
    assert "past" in refused("ValidationError", put, **given, StartTime=past, DesiredCapacity=0)
    put(**given, StartTime=later, MinSize=0, MaxSize=0, DesiredCapacity=0)
    clash = {**given, "ScheduledActionName": "other"}
    refused("ValidationError", put, **clash, StartTime=later, DesiredCapacity=1)

    def planned() -> list[dict[str, Any]]:
        group = {"AutoScalingGroupName": "a-group"}
        found = user.autoscaling.describe_scheduled_actions(**group)
        return list(found["ScheduledUpdateGroupActions"])

    assert [(action["StartTime"], action["DesiredCapacity"]) for action in planned()] == [
        (later, 0)
    ]
    assert "scheduled action a-group/stop in us-west-1" in aws.inventory()
    aws.advance(3500)
    assert len(planned()) == 1
    aws.advance(100)
    until(lambda: not planned(), 10)
    until(lambda: not user.group()["Instances"], 10)
    assert user.group()["MaxSize"] == 0
    assert "scheduled action" in user.activities()[0]["Cause"]


def test_a_template_may_go_before_its_group(user: User) -> None:
    user.make_template()
    user.make_group()
    user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    user.set_desired(1)
    until(lambda: user.activities(), 10)
    assert "does not exist. Launching EC2 instance failed." in user.activities()[0]["StatusMessage"]


# What cannot be launched


def _failure(user: User) -> str:
    """Why launches fail; there may be several by now."""
    until(lambda: user.activities(), 10)
    activity = user.activities()[0]
    assert activity["StatusCode"] == "Failed"
    assert activity["Description"].endswith(activity["StatusMessage"])
    return str(activity["StatusMessage"])


def test_without_capacity_a_group_tries_again_until_there_is_some(aws: SimAWS, user: User) -> None:
    aws.capacity("m5.large", None, False)
    user.make_template(spot=True)
    user.make_group(2)
    assert _failure(user) == (
        "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
        "capacity available that matches your request. Launching EC2 instance failed."
    )
    assert user.group()["DesiredCapacity"] == 2
    aws.capacity("m5.large", None, 1)
    user.in_service(1)
    aws.capacity(None, None, True)
    user.in_service(2)


def test_another_zone_is_tried(aws: SimAWS, user: User) -> None:
    aws.capacity(None, "us-west-1a", False)
    user.make_template()
    user.make_group(2)
    user.in_service(2)
    zones = {instance["AvailabilityZone"] for instance in user.group()["Instances"]}
    assert zones == {"us-west-1b"}
    failed = [a for a in user.activities() if a["StatusCode"] == "Failed"]
    assert "sufficient m5.large capacity" in failed[0]["StatusMessage"]
    assert "us-west-1a" in failed[0]["StatusMessage"]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (Refusal.QUOTA, "current vCPU limit of 0"),
        (Refusal.SPOT_QUOTA, "MaxSpotInstanceCountExceeded"),
        (Refusal.UNSUPPORTED, "instance type (m5.large) is not supported"),
        (Refusal.PRICE, "SpotMaxPriceTooLow"),
        (Refusal.IMAGE, "does not exist"),
        ("Something new.", "Something new. Launching EC2 instance failed."),
    ],
)
def test_launches_are_refused_in_the_words_of_aws(
    aws: SimAWS, user: User, why: Refusal | str, said: str
) -> None:
    aws.refuse(why, instance_type="m5.large")
    user.make_template()
    user.make_group(1)
    assert said in _failure(user)
    aws.allow()
    user.in_service(1)


def test_spot_instances_have_a_price(aws: SimAWS, user: User) -> None:
    aws.spot_price("m5.large", 0.05)
    spot = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.01"}}
    user.make_template(InstanceMarketOptions=spot)
    user.make_group(1)
    assert "price of 0.01 is lower than" in _failure(user)
    aws.spot_price("m5.large", 0.005)
    user.in_service(1)


def test_a_type_that_a_zone_lacks_is_not_launched_there(aws: SimAWS) -> None:
    user = User(aws.environment(), "us-east-1")
    user.make_template()
    user.make_group(1, VPCZoneIdentifier=user.subnets("e"))
    assert "not supported in your requested Availability Zone (us-east-1e)" in _failure(user)
    user.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName="a-group", VPCZoneIdentifier=user.subnets("e", "f")
    )
    user.in_service(1)
    user.close()


def test_user_data_arrives_as_it_was_given(aws: SimAWS, user: User) -> None:
    data = bytes(range(256))
    user.make_template(UserData=base64.b64encode(data).decode())
    user.make_group(1)
    user.in_service(1)
    assert aws.instances()[0].user_data == data


def _zones(aws: SimAWS) -> list[str]:
    return sorted(each.zone for each in aws.instances() if each.state == "running")


def _make_uneven_group(aws: SimAWS, user: User) -> list[str]:
    """Two in each of two zones, of which those in one leave for good; returns the others."""
    user.make_template()
    user.make_group(4, VPCZoneIdentifier=user.subnets())
    user.in_service(4)
    zone = _zones(aws)[0]
    assert _zones(aws).count(zone) == 2
    here = {each.id: each.zone for each in aws.instances()}
    for instance in [name for name in here if here[name] == zone]:
        user.autoscaling.terminate_instance_in_auto_scaling_group(
            InstanceId=instance, ShouldDecrementDesiredCapacity=True
        )
    return [name for name in here if here[name] != zone]


def test_a_group_with_uneven_zones_ends_an_instance_at_work(aws: SimAWS, user: User) -> None:
    staying = _make_uneven_group(aws, user)
    until(lambda: len(set(_zones(aws))) == len(_zones(aws)) == 2, 10)
    assert len(set(staying) & set(user.in_service(2))) == 1
    causes = [activity["Cause"] for activity in user.activities()]
    assert any("to balance instances in zones" in cause for cause in causes)
    user.delete_group()


def test_a_group_may_be_told_to_leave_its_zones_uneven(aws: SimAWS, user: User) -> None:
    aws.timing.rebalance = 3600
    staying = _make_uneven_group(aws, user)
    which = {"AutoScalingGroupName": "a-group", "ScalingProcesses": ["AZRebalance"]}
    user.autoscaling.suspend_processes(**which)
    [suspended] = user.group()["SuspendedProcesses"]
    assert suspended["ProcessName"] == "AZRebalance"
    aws.advance(3600)
    assert sorted(user.in_service(2)) == sorted(staying)
    assert not any("to balance" in activity["Cause"] for activity in user.activities())
    aws.timing.rebalance = 0
    user.autoscaling.resume_processes(**which)
    assert user.group()["SuspendedProcesses"] == []
    until(lambda: len(set(_zones(aws))) == 2, 10)
    user.delete_group()


def test_a_group_that_cannot_launch_for_a_day_gives_up(aws: SimAWS, user: User) -> None:
    aws.capacity(None, None, False)
    user.make_template()
    user.make_group(1)
    until(user.activities)
    aws.advance(24 * 3600)
    until(lambda: user.group()["SuspendedProcesses"])
    [suspended] = user.group()["SuspendedProcesses"]
    assert suspended["ProcessName"] == "Launch"
    assert suspended["SuspensionReason"].startswith("Administratively suspended")
    aws.capacity(None, None, True)
    aws.advance(3600)
    tried = len(user.activities())
    assert user.members() == []
    assert len(user.activities()) == tried
    user.autoscaling.resume_processes(AutoScalingGroupName="a-group", ScalingProcesses=["Launch"])
    user.in_service(1)
    user.delete_group()
