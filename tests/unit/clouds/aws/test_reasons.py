"""Why machines do not come, in a sentence that says what to do."""

from __future__ import annotations

import re
from typing import Any

import pytest

import sojourn
from sojourn import State, clouds
from sojourn.clouds.aws.reasons import quota_name, reason
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.market import Refusal
from tests.support.waiting import until


def _created(**more: Any) -> sojourn.Handle:
    return sojourn.create(Task("#!/bin/sh\n", cloud="aws", **more))


def _obstacle(handle: sojourn.Handle) -> str:
    """What the status adds to what it says of any task without machines."""
    usual = "waiting for a machine"
    until(lambda: handle.status().reason.startswith(f"{usual}: "))
    now = handle.status()
    assert now.state is State.QUEUED
    return now.reason.removeprefix(f"{usual}: ")


@pytest.mark.parametrize(
    ("why", "more", "said"),
    [
        (
            Refusal.CAPACITY,
            {},
            "AWS has no capacity for m5.2xlarge right now and keeps trying: "
            "wait, or choose another machine or region",
        ),
        (
            Refusal.SPOT_CAPACITY,
            {"spot": 0, "machine": "m+t4"},
            "AWS has no spot capacity for g4dn.xlarge right now and keeps trying: "
            "wait, or choose another machine or region",
        ),
        (
            Refusal.QUOTA,
            {"machine": "p4d.24xlarge", "region": "us-east"},
            "the quota 'Running On-Demand P instances' of 0 vCPUs is too small: "
            "request an increase in Service Quotas",
        ),
        (
            Refusal.SPOT_QUOTA,
            {"spot": 0},
            "the quota 'All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests' "
            "is used up: request an increase in Service Quotas",
        ),
        (
            "Max spot instance count exceeded",
            {"spot": 0, "machine": "m+t4"},
            "the quota 'All G and VT Spot Instance Requests' is used up: "
            "request an increase in Service Quotas",
        ),
        (
            "UnfulfillableCapacity - Unable to fulfill capacity due to your request configuration.",
            {"spot": 0},
            "AWS has no spot capacity for m5.2xlarge right now and keeps trying: "
            "wait, or choose another machine or region",
        ),
        (
            Refusal.UNSUPPORTED,
            {"region": "eu-north-1", "machine": "m5.large"},
            "m5.large is not available in zone eu-north-1?: choose another machine or region",
        ),
        (
            Refusal.IMAGE,
            {},
            "image ami-? no longer exists: create the task again with another image",
        ),
        (
            "You are not authorized to perform this operation. Encoded authorization failure "
            "message: abcdef",
            {},
            "missing permission to start machines: see docs/aws.md for the full policy",
        ),
        ("Something else that is wrong.", {}, "Something else that is wrong."),
    ],
)
def test_a_refused_launch_is_explained_in_a_sentence(
    laptop: SimAWS, why: Refusal | str, more: dict[str, Any], said: str
) -> None:
    laptop.refuse(why)
    handle = _created(**more)
    obstacle = _obstacle(handle)
    assert re.sub(r"(eu-north-1|ami-)[0-9a-f]+", r"\1?", obstacle) == said
    failed = [event for event in handle.events() if event.code == "Failed"]
    assert failed[0].description.startswith("Launching a new EC2 instance: ")
    assert all(len(event.description) < 250 for event in failed)
    handle.delete()
    assert laptop.inventory() == []


def test_a_price_that_is_too_low_is_told_with_what_it_would_cost(laptop: SimAWS) -> None:
    laptop.spot_price("m5.2xlarge", 0.15)
    handle = _created(spot=0.1)
    assert _obstacle(handle) == (
        "the spot price is 0.15 USD per hour, above the maximum of 0.1: "
        "wait, or create the task with a higher spot price"
    )
    handle.delete()


def test_a_very_small_price_is_written_as_aws_takes_it(laptop: SimAWS) -> None:
    laptop.spot_price("m5.2xlarge", 0.15)
    handle = _created(spot=0.00005)
    assert "above the maximum of 0.00005:" in _obstacle(handle)
    handle.delete()


def test_a_failure_is_not_told_any_more_once_a_machine_came(laptop: SimAWS) -> None:
    laptop.capacity(None, None, False)
    handle = _created()
    assert "capacity" in _obstacle(handle)
    laptop.capacity(None, None, True)
    until(handle.machines)
    scaler = clouds.load("aws").scaler(TaskId.parse(handle.id))
    until(lambda: scaler.obstacle(Context()) == "")
    assert any(event.code == "Failed" for event in handle.events())
    handle.delete()


def test_that_aws_stopped_trying_is_told_and_a_start_has_it_try_again(laptop: SimAWS) -> None:
    laptop.capacity(None, None, False)
    handle = _created()
    assert "capacity" in _obstacle(handle)
    laptop.advance(24 * 3600)
    stopped = f"AWS stopped trying; run `sojourn start {handle.id}` to try again"
    until(lambda: _obstacle(handle) == stopped)
    laptop.capacity(None, None, True)
    handle.start()
    until(handle.machines)
    handle.delete()
    assert laptop.inventory() == []


@pytest.mark.parametrize(
    ("type", "spot", "name"),
    [
        ("t2.micro", False, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
        ("g4dn.xlarge", False, "Running On-Demand G and VT instances"),
        ("g4dn.xlarge", True, "All G and VT Spot Instance Requests"),
        ("p3.2xlarge", True, "All P4, P3 and P2 Spot Instance Requests"),
        ("p5.48xlarge", True, "All P5 Spot Instance Requests"),
        ("inf2.xlarge", False, "Running On-Demand Inf instances"),
        ("i3.large", False, "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"),
    ],
)
def test_quotas_have_their_names_of_service_quotas(type: str, spot: bool, name: str) -> None:
    assert quota_name(type, spot=spot) == name


def test_a_profile_that_is_not_there_is_named() -> None:
    text = (
        "Value (arn:aws:iam::1:instance-profile/mine) for parameter iamInstanceProfile.arn is "
        "invalid. Invalid IAM Instance Profile ARN. Launching EC2 instance failed."
    )
    assert reason(text, None) == (
        "instance profile arn:aws:iam::1:instance-profile/mine not found: "
        "create it, or choose another permission_set"
    )


def test_what_is_not_known_is_cut_short() -> None:
    assert len(reason("word " * 100, None)) <= 200


def test_a_task_that_never_got_a_machine_waits_for_a_week_and_its_timeout(laptop: SimAWS) -> None:
    laptop.capacity(None, None, False)
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", timeout=7200))
    laptop.advance((7 * 24 + 2 + 1) * 3600 - 60)
    assert handle.status().state is State.QUEUED
    laptop.advance(120)
    until(lambda: handle.status().state is State.STOPPED)
    handle.delete(fetch=False)
