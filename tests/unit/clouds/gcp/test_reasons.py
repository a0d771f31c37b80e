"""Why machines do not come, in a sentence that says what to do."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn import State
from sojourn.clouds.gcp.reasons import reason
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.market import Refusal
from tests.support.waiting import until

_USUAL = "waiting for a machine"


def _created(**more: Any) -> sojourn.Handle:
    return sojourn.create(Task("#!/bin/sh\n", cloud="gcp", **more))


def _obstacle(handle: sojourn.Handle) -> str:
    """What the status adds to what it says of any task without machines."""
    until(lambda: handle.status().reason.startswith(f"{_USUAL}: "))
    now = handle.status()
    assert now.state is State.QUEUED
    return now.reason.removeprefix(f"{_USUAL}: ")


@pytest.mark.parametrize(
    ("why", "more", "said"),
    [
        (
            Refusal.CAPACITY,
            {},
            "Google Cloud has no capacity for e2-custom-8-32768 in us-west1-b right now and keeps "
            "trying: wait, or choose another machine or zone",
        ),
        (
            Refusal.CAPACITY_WITH_DETAILS,
            {"spot": 0, "machine": "m+t4"},
            "Google Cloud has no spot capacity for n1-standard-4+nvidia-tesla-t4*1 in us-west1-b "
            "right now and keeps trying: wait, or choose another machine or zone",
        ),
        (
            Refusal.QUOTA,
            {"spot": 0},
            "the quota PREEMPTIBLE_CPUS of 0 is used up: request an increase in the console's "
            "Quotas page",
        ),
        (
            Refusal.GPU_QUOTA,
            {"machine": "m+t4"},
            "the quota GPUS_ALL_REGIONS of 0 is used up: request an increase in the console's "
            "Quotas page",
        ),
        (
            Refusal.UNSUPPORTED,
            {},
            "The machine type e2-custom-8-32768 is not supported in zone us-west1-b.",
        ),
        (
            Refusal.POLICY,
            {},
            "Constraint constraints/compute.vmExternalIpAccess violated for project "
            "simulated-project. Add the instance to the constraint to use an external IP with it.",
        ),
    ],
)
def test_the_status_of_a_task_says_why_no_machine_comes(
    project: SimGCP, why: Refusal, more: dict[str, Any], said: str
) -> None:
    project.refuse(why)
    handle = _created(**more)
    assert _obstacle(handle) == said
    told = handle.events()
    assert said in {event.description for event in told}
    handle.delete(fetch=False)
    assert project.inventory() == []


def test_what_was_in_the_way_is_not_told_once_a_machine_came(project: SimGCP) -> None:
    project.refuse(Refusal.CAPACITY, times=1)
    handle = _created()
    project.wait(lambda: any(each.status == "RUNNING" for each in project.instances()))
    assert "capacity" not in handle.status().reason
    assert any("no capacity" in event.description for event in handle.events())
    handle.delete(fetch=False)


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("X", "The service account 'a@b' was not found.", "service account a@b not found: create"),
        (
            "RESOURCE_NOT_FOUND",
            "Invalid value for field 'zones/z/machineTypes/huge'. It does not exist.",
            "huge is not available in us-west1-b: choose another",
        ),
        (
            "PERMISSIONS_ERROR",
            "Required 'compute.instances.create' permission for 'x'",
            "the project's own account for groups lacks permission",
        ),
        ("STRANGE", "x" * 300, "x" * 197 + "..."),
    ],
)
def test_other_reasons(code: str, message: str, said: str) -> None:
    assert said in reason(code, message, "us-west1-b", None)
