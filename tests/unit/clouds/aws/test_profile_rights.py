"""A role of the user's that lacks what machines need is refused before anything is made."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.cloud import AwsCloud
from sojourn.core.context import Context
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Storage, Task
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User, allow
from tests.support.warned import warnings_of

_PAGE = Path(__file__).parents[4] / "docs" / "aws.md"
Check = Callable[..., list[str]]


def _documented() -> dict[str, Any]:
    section = _PAGE.read_text().split("## What machines may do", 1)[1].split("\n## ", 1)[0]
    [text] = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


def _without(action: str) -> dict[str, Any]:
    policy = copy.deepcopy(_documented())
    for statement in policy["Statement"]:
        given = statement["Action"]
        if statement["Effect"] == "Allow" and isinstance(given, list):
            statement["Action"] = [each for each in given if each != action]
        elif given == action:
            statement["Action"] = "none:None"
    return policy


@pytest.fixture
def check(laptop: SimAWS) -> Check:
    """Looks at a role with such a policy, as before a creation; returns what there is to say."""
    iam = backends.iam()
    iam.create_role("mine", "{}", "/", None, "", [], 3600)
    profile = iam.create_instance_profile("mine", "/", ["mine"])

    def looked(policy: dict[str, Any], **more: Any) -> list[str]:
        iam.put_role_policy("mine", "given", json.dumps(policy))
        task = Task("#!/bin/sh\n", cloud="aws", permission_set=profile.arn, **more)
        return [each for each in warnings_of(AwsCloud(Account()), task) if "role/mine" in each]

    return looked


@pytest.mark.parametrize("name", ["", "mine"])
def test_the_documented_policy_is_enough(check: Check, name: str) -> None:
    assert check(_documented(), name=name) == []


@pytest.mark.parametrize(
    "action",
    [
        "autoscaling:CompleteLifecycleAction",
        "autoscaling:RecordLifecycleActionHeartbeat",
        "autoscaling:TerminateInstanceInAutoScalingGroup",
        "s3:GetObject",
        "s3:ListBucket",
        "s3:PutObject",
    ],
)
def test_what_is_missing_is_named_before_anything_is_made(
    check: Check, laptop: SimAWS, action: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"role/mine is not allowed {action}, which") as caught:
        check(_without(action))
    assert caught.value.path == "permission_set"
    with pytest.raises(InvalidInput, match=action):
        sojourn.create(Task("#!/bin/sh\n", cloud="aws", permission_set=_arn()))
    assert not any("tpi-" in line for line in laptop.inventory())


def _arn() -> str:
    [profile] = backends.iam().instance_profiles.values()
    return str(profile.arn)


def test_what_a_condition_says_is_left_to_the_machine(check: Check) -> None:
    tagged = {"StringEquals": {"aws:ResourceTag/team": "ml"}}
    policy = _without("autoscaling:TerminateInstanceInAutoScalingGroup")
    leave = "autoscaling:TerminateInstanceInAutoScalingGroup"
    policy["Statement"] += allow(leave, Condition=tagged)["Statement"]
    assert check(policy) == []


def test_the_policy_of_a_bucket_of_the_users_may_allow_the_rest(check: Check, user: User) -> None:
    user.make_bucket("shared")
    policy = allow("autoscaling:*")
    assert check(policy, storage=Storage(container="shared")) == []
    user.remove_bucket("shared")


def test_a_profile_without_a_role_is_refused(laptop: SimAWS) -> None:
    profile = backends.iam().create_instance_profile("empty", "/", [])
    task = Task("#!/bin/sh\n", cloud="aws", permission_set=profile.arn)
    with pytest.raises(InvalidInput, match="instance profile empty has no role"):
        list(AwsCloud(Account()).check(Context(), task))


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("iam:SimulatePrincipalPolicy", "you lack iam:SimulatePrincipalPolicy"),
        ("iam:GetInstanceProfile", "you lack iam:GetInstanceProfile"),
    ],
)
def test_who_may_not_ask_is_told_once_and_goes_on(
    check: Check, laptop: SimAWS, monkeypatch: pytest.MonkeyPatch, action: str, said: str
) -> None:
    everything_but = {"Effect": "Deny", "Action": action, "Resource": "*"}
    policy = allow("*")
    policy["Statement"].append(everything_but)
    for name, value in laptop.user(policy).items():
        monkeypatch.setenv(name, value)
    task = Task("#!/bin/sh\n", cloud="aws", permission_set=_arn())
    notes = [n for n in warnings_of(AwsCloud(Account()), task) if "Could not check" in n]
    assert len(notes) == 1
    assert said in notes[0]
    assert "TerminateInstanceInAutoScalingGroup, s3:ListBucket, s3:DeleteObject" in notes[0]
