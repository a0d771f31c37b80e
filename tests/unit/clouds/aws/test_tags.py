"""Tags that AWS would not take are refused before anything is made; ours are always possible."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.aws import listing, tags
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import TRUST, User, refused


def _task(**more: Any) -> Task:
    return Task("#!/bin/sh\n", cloud="aws", **more)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"a": "b*"}, "'b*' must contain only letters"),
        ({"a(b)": ""}, "'a(b)' must contain only letters"),
        ({"a": "one\ntwo"}, "must contain only letters"),
        ({"": "b"}, "must have 1 to 128 characters, got 0"),
        ({"a" * 129: "b"}, "must have 1 to 128 characters, got 129"),
        ({"a": "b" * 257}, "must have at most 256 characters, got 257"),
        ({"AWS:a": "b"}, "is reserved for AWS and Sojourn"),
        ({"Sojourn:id": "b"}, "is reserved for AWS and Sojourn"),
        ({"team": "a", "Team": "b"}, "duplicate tag 'Team'"),
        ({str(number): "" for number in range(44)}, "must be at most 43 on AWS, got 44"),
    ],
)
def test_tags_that_aws_would_refuse_are_refused_before_anything_is_made(
    laptop: SimAWS, given: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        sojourn.create(_task(tags=given))
    assert caught.value.path == "tags"
    assert said in caught.value.message
    assert laptop.inventory() == []


def test_all_problems_of_tags_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        tags.check(_task(tags={"a": "*", "b": "!"}))
    assert len(caught.value.problems) == 2


def test_a_task_of_any_name_and_the_most_tags_can_be_created(laptop: SimAWS) -> None:
    own = {f"Größe {number} a_b.c:/=+-@": "wert é" for number in range(tags.MOST)}
    handle = sojourn.create(_task(name="train (best) \t#1! 🚀" + "x" * 300, tags=own))
    handle.delete(fetch=False)
    assert laptop.inventory() == []


def test_the_name_of_a_task_is_kept_as_far_as_aws_takes_it() -> None:
    marks = tags.tags_of(TaskId.deterministic("a"), _task(name="train (best) é!"))
    assert marks["sojourn:name"] == "train -best- é-"


@pytest.mark.parametrize("key", ["Name", "name"])
def test_a_name_that_the_user_gives_is_what_consoles_show(laptop: SimAWS, key: str) -> None:
    task = _task(tags={key: "mine"})
    marks = tags.tags_of(TaskId.deterministic("a"), task)
    assert [value for name, value in marks.items() if name.lower() == "name"] == ["mine"]
    sojourn.create(task).delete(fetch=False)
    assert laptop.inventory() == []


def test_machines_write_no_more_tags_than_there_is_room_for() -> None:
    own = {str(number): "" for number in range(40)}
    assert listing.can_mark(_task(tags=own, parallelism=3))
    assert not listing.can_mark(_task(tags=own, parallelism=4))


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ([("a", "b*")], "ValidationError"),
        ([("a*", "b")], "ValidationError"),
        ([("a", "b"), ("A", "c")], "InvalidInput"),
        ([("aws:a", "b")], "InvalidInput"),
    ],
)
def test_the_simulated_iam_refuses_them(
    sim: SimAWS, user: User, given: list[tuple[str, str]], code: str
) -> None:
    marks = [{"Key": key, "Value": value} for key, value in given]
    refused(code, user.iam.create_role, RoleName="a", AssumeRolePolicyDocument=TRUST, Tags=marks)
    refused(code, user.iam.create_instance_profile, InstanceProfileName="a", Tags=marks)
