"""What the role of a task's machines allows, as AWS would judge it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sojourn.clouds.aws.locations import Location
from sojourn.clouds.aws.policy import machine_policy
from sojourn.clouds.vm.paths import READ
from sojourn.storage.layout import LAPTOPS_WRITE
from tests.simcloud.aws import policy
from tests.unit.clouds.aws.faults.laptop import ID

OWN = Location("us-west-1", str(ID), "", "us-west-1")
CONTAINED = Location("us-west-1", "shared", "mine", "us-west-1", contained=True)
GROUP = "arn:aws:autoscaling:us-west-1:1:autoScalingGroup:x:autoScalingGroupName"


def may(place: Location, action: str, resource: str, prefix: str = "") -> bool:
    return policy.allowed(
        [machine_policy(ID, place)], action, resource, {"s3:prefix": [prefix]} if prefix else {}
    )


@pytest.mark.parametrize(("place", "inside"), [(OWN, ""), (CONTAINED, "mine/")])
def test_a_machine_reaches_its_own_store_but_the_laptops_part(place: Location, inside: str) -> None:
    store = f"arn:aws:s3:::{place.bucket}"
    assert may(place, "s3:ListBucket", store, f"{inside}logs/")
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
        assert may(place, action, f"{store}/{inside}logs/1")
        assert not may(place, action, f"{store}/{inside}laptop/seed")
    for action in ("s3:DeleteBucket", "s3:PutBucketPolicy", "s3:GetBucketTagging"):
        assert not may(place, action, store)


@pytest.mark.parametrize(("place", "inside"), [(OWN, ""), (CONTAINED, "mine/")])
def test_what_a_laptop_acts_on_a_machine_can_only_read(place: Location, inside: str) -> None:
    store = f"arn:aws:s3:::{place.bucket}/{inside}"
    for name in READ:
        path = f"{name}x" if name.endswith("/") else name
        assert may(place, "s3:GetObject", f"{store}{path}")
    for name in LAPTOPS_WRITE:
        for path in (name, f"{name}/x"):
            assert not may(place, "s3:PutObject", f"{store}{path}")
            assert not may(place, "s3:DeleteObject", f"{store}{path}")
    for path in ("boot/agent-x86_64-311.zip", "laptop/owner", "anything"):
        assert not may(place, "s3:PutObject", f"{store}{path}")


def test_a_machine_does_not_reach_other_tasks_in_the_same_bucket() -> None:
    store = "arn:aws:s3:::shared"
    for path in ("other/task.json", "mine-too/task.json", "minetoo", "task.json"):
        assert not may(CONTAINED, "s3:GetObject", f"{store}/{path}")
        assert not may(CONTAINED, "s3:PutObject", f"{store}/{path}")
    for prefix in ("", "other/", "mine-too/", "mine"):
        assert not may(CONTAINED, "s3:ListBucket", store, prefix)


def test_a_machine_leaves_its_own_group_and_touches_no_other() -> None:
    for action in (
        "CompleteLifecycleAction",
        "RecordLifecycleActionHeartbeat",
        "TerminateInstanceInAutoScalingGroup",
    ):
        assert may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}")
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/other")
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}-2")
    for action in (
        "PutLifecycleHook",
        "PutScheduledUpdateGroupAction",
        "SetDesiredCapacity",
        "DeleteAutoScalingGroup",
        "UpdateAutoScalingGroup",
    ):
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}")


def test_the_documented_policy_of_a_given_profile_allows_what_that_of_ours_does() -> None:
    """But for tags of the group, which machines with a given profile do not write."""
    page = (Path(__file__).parents[5] / "docs" / "aws.md").read_text()
    section = page.split("## What machines may do", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    assert block
    documented = _effects(json.loads(block[1]))
    ours = _effects(machine_policy(ID, OWN))
    assert documented == ours - {("Allow", "autoscaling:CreateOrUpdateTags")}


def _effects(given: dict[str, Any]) -> set[tuple[str, str]]:
    found = set()
    for statement in given["Statement"]:
        named = statement["Action"]
        for action in [named] if isinstance(named, str) else named:
            found.add((statement["Effect"], action))
    return found
