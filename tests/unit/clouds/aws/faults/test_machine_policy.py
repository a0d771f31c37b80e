"""What the role of a task's machines allows, as AWS would judge it."""

from __future__ import annotations

import pytest

from sojourn.clouds.aws.locate import Place
from sojourn.clouds.aws.policy import machine_policy
from tests.simcloud.aws import policy
from tests.unit.clouds.aws.faults.laptop import ID

OWN = Place("us-west-1", str(ID), "", "us-west-1")
CONTAINED = Place("us-west-1", "shared", "mine", "us-west-1")
GROUP = "arn:aws:autoscaling:us-west-1:1:autoScalingGroup:x:autoScalingGroupName"


def may(place: Place, action: str, resource: str, prefix: str = "") -> bool:
    return policy.allowed(
        [machine_policy(ID, place)], action, resource, {"s3:prefix": [prefix]} if prefix else {}
    )


@pytest.mark.parametrize(("place", "inside"), [(OWN, ""), (CONTAINED, "mine/")])
def test_a_machine_reaches_its_own_store_but_the_laptops_part(place: Place, inside: str) -> None:
    store = f"arn:aws:s3:::{place.bucket}"
    assert may(place, "s3:ListBucket", store, f"{inside}logs/")
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
        assert may(place, action, f"{store}/{inside}logs/1")
        assert not may(place, action, f"{store}/{inside}laptop/seed")
    for action in ("s3:DeleteBucket", "s3:PutBucketPolicy", "s3:GetBucketTagging"):
        assert not may(place, action, store)


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
        "PutScheduledUpdateGroupAction",
        "RecordLifecycleActionHeartbeat",
        "TerminateInstanceInAutoScalingGroup",
    ):
        assert may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}")
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/other")
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}-2")
    for action in (
        "PutLifecycleHook",
        "SetDesiredCapacity",
        "DeleteAutoScalingGroup",
        "UpdateAutoScalingGroup",
    ):
        assert not may(OWN, f"autoscaling:{action}", f"{GROUP}/{ID}")
