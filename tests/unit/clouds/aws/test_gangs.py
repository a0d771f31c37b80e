"""What a gang has in an account beside what other tasks have: neighbours, and doors among them."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.cloud import AwsCloud
from sojourn.core.context import Context
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User


def _task(**more: Any) -> Task:
    return Task("#!/bin/sh\n", cloud="aws", **more)


def _placement(user: User, name: str) -> str:
    found = user.ec2.describe_launch_template_versions(
        LaunchTemplateName=name, Versions=["$Latest"]
    )["LaunchTemplateVersions"]
    return str(found[0]["LaunchTemplateData"].get("Placement", {}).get("GroupName", ""))


def _zones(user: User, name: str) -> set[str]:
    """Where machines of a task may be."""
    [group] = user.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    subnets = str(group["VPCZoneIdentifier"]).split(",")
    found = user.ec2.describe_subnets(SubnetIds=subnets)["Subnets"]
    return {str(each["AvailabilityZone"]) for each in found}


def _sources(user: User, name: str) -> list[tuple[str, list[str]]]:
    """Protocols of the rules for other machines, and the names of their groups."""
    found = user.ec2.describe_security_groups()["SecurityGroups"]
    names = {each["GroupId"]: each["GroupName"] for each in found}
    [group] = [each for each in found if each["GroupName"] == name]
    return [
        (rule["IpProtocol"], [names[pair["GroupId"]] for pair in rule["UserIdGroupPairs"]])
        for rule in group["IpPermissions"]
        if rule["UserIdGroupPairs"]
    ]


def test_machines_of_a_gang_are_near_each_other_and_open_to_each_other(
    laptop: SimAWS, user: User
) -> None:
    handle = sojourn.create(_task(gang=True, parallelism=3))
    name = str(handle.id)
    assert f"placement group {name} in us-west-1" in laptop.inventory()
    assert _placement(user, name) == name
    assert len(_zones(user, name)) == 1
    assert _sources(user, name) == [("-1", [name])]
    laptop.wait(lambda: len([i for i in laptop.instances() if i.state == "running"]) == 3)
    handle.delete(fetch=False)
    assert laptop.inventory() == []


def test_other_tasks_are_in_all_zones_and_closed(laptop: SimAWS, user: User) -> None:
    handle = sojourn.create(_task(parallelism=2))
    name = str(handle.id)
    assert not [line for line in laptop.inventory() if line.startswith("placement group")]
    assert _placement(user, name) == ""
    assert len(_zones(user, name)) > 1
    assert _sources(user, name) == []
    handle.delete(fetch=False)


@pytest.mark.parametrize("machine", ["s", "t3.micro"])
def test_types_that_cannot_be_in_a_placement_group_go_without(
    laptop: SimAWS, user: User, machine: str
) -> None:
    task = _task(gang=True, parallelism=2, machine=machine)
    [note] = AwsCloud(Account()).check(Context(), task)
    assert "does not support cluster placement groups" in note
    handle = sojourn.create(task)
    assert not [line for line in laptop.inventory() if line.startswith("placement group")]
    assert _placement(user, str(handle.id)) == ""
    assert len(_zones(user, str(handle.id))) == 1
    handle.delete(fetch=False)
    assert laptop.inventory() == []


def test_the_zone_of_a_gang_stays_and_is_not_the_same_for_all(laptop: SimAWS, user: User) -> None:
    handles = [
        sojourn.create(_task(gang=True, parallelism=2, machine="s", name=f"gang-{number}"))
        for number in range(4)
    ]
    zones = [_zones(user, str(handle.id)) for handle in handles]
    assert len({zone for each in zones for zone in each}) > 1
    for handle in handles:
        handle.delete(fetch=False)
    again = sojourn.create(_task(gang=True, parallelism=2, machine="s", name="gang-0"))
    assert _zones(user, str(again.id)) == zones[0]
    again.delete(fetch=False)
