"""Tags that cannot be labels are refused before anything is made; ours are always possible."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.gcp import tags
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User, refused

ID = TaskId.deterministic("a")


def _task(**more: Any) -> Task:
    return Task("#!/bin/sh\n", cloud="gcp", **more)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"Team": "a"}, "'Team' must have 1 to 63 lowercase letters"),
        ({"1a": "b"}, "start with a letter"),
        ({"a.b": "c"}, "'a.b' must have"),
        ({"": "b"}, "must have 1 to 63"),
        ({"a" * 64: "b"}, "must have 1 to 63"),
        ({"a\n": "b"}, "must have 1 to 63"),
        ({"a": "Best"}, "the value of 'a' must have at most 63 lowercase letters"),
        ({"a": "b" * 64}, "at most 63"),
        ({"a": "b\n"}, "at most 63"),
        ({"sojourn-id": "b"}, "is reserved for Sojourn"),
        ({f"a{number}": "" for number in range(59)}, "must be at most 58 on Google Cloud, got 59"),
    ],
)
def test_tags_that_cannot_be_labels_are_refused_before_anything_is_made(
    untouched: SimGCP, given: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        sojourn.create(_task(tags=given))
    assert caught.value.path == "tags"
    assert said in caught.value.message


def test_all_problems_of_tags_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        tags.check(_task(tags={"A": "B", "c": "D"}))
    assert len(caught.value.problems) == 3


def test_a_task_of_any_name_and_the_most_tags_can_be_created(project: SimGCP, user: User) -> None:
    own = {f"a_b-{number}": "_c-1" for number in range(tags.MOST)}
    handle = sojourn.create(_task(name="Train (best) \t#1! 🚀" + "x" * 300, tags=own))
    bucket = user.call("GET", "storage", f"storage/v1/b/{handle.id}")["labels"]
    template = user.get(f"global/instanceTemplates/{handle.id}")["properties"]
    handle.delete(fetch=False)
    for labels in (bucket, template["labels"], template["disks"][0]["initializeParams"]["labels"]):
        assert labels.items() >= own.items()
        assert labels[tags.ID] == handle.id
    assert bucket[tags.ZONE] == "us-west1-b"


@pytest.mark.parametrize(
    ("name", "kept"),
    [("Train (best) é!", "train--best----"), ("x" * 100, "x" * 63), ("a_b-1", "a_b-1")],
)
def test_the_name_of_a_task_is_kept_as_far_as_google_takes_it(name: str, kept: str) -> None:
    assert tags.labels_of(ID, _task(name=name))["sojourn-name"] == kept


def test_tags_of_this_computer_are_checked_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOJOURN_TAGS", "team=a, cost=one")
    assert tags.labels_of(ID, _task(tags={"team": "b"})).items() >= {
        ("team", "b"),
        ("cost", "one"),
    }
    monkeypatch.setenv("SOJOURN_TAGS", "Team=a")
    with pytest.raises(InvalidInput, match="'Team' must have 1 to 63"):
        tags.check(_task())


@pytest.mark.parametrize("labels", [{"A": "b"}, {"a": "B"}, {"a" * 64: ""}, {"a": "b" * 64}])
def test_the_simulated_services_refuse_them(
    sim: SimGCP, user: User, labels: dict[str, str]
) -> None:
    refused(400, "invalid", user.make_template, labels=labels)
    refused(400, "invalid", user.make_bucket, labels=labels)
