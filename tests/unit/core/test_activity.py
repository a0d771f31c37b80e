"""What others wrote is shown, and nothing else is made of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.core.activity import Activity, Doing
from sojourn.core.status import RankRecord, State, rank_status, task_status

GIB = 1 << 30


@pytest.mark.parametrize(
    ("activity", "text"),
    [
        (Activity(Doing.RESTORING), "restoring workdir"),
        (
            Activity(Doing.RESTORING, int(1.2 * GIB), int(3.4 * GIB)),
            "restoring workdir: 1.2 of 3.4 GiB",
        ),
        (Activity(Doing.UPLOADING, 0, 1), "uploading workdir: 0 of 1 bytes"),
        (Activity(Doing.UPLOADING, 512, 2048), "uploading workdir: 0.5 of 2.0 KiB"),
        (Activity(Doing.LOG_FULL), "cannot store the log: no space left in the store"),
        (
            Activity.after(Doing.ENDED_FULL, 3),
            "the script has ended with exit code 3, but its results are not stored yet: no space "
            "left in the store; make room, or run `sojourn pull` to download what is stored",
        ),
        (
            Activity.after(Doing.ENDED_REFUSED, None),
            "the script has ended, but its results are not stored yet: the store denied access; "
            "allow it again, or run `sojourn pull` to download what is stored",
        ),
    ],
)
def test_words(activity: Activity, text: str) -> None:
    assert activity.text == text


@given(st.sampled_from(Doing), st.integers(0, 1 << 59), st.integers(0, 1 << 59))
def test_there_and_back(doing: Doing, one: int, other: int) -> None:
    activity = Activity(doing, min(one, other), max(one, other))
    assert Activity.from_dict(json.loads(json.dumps(activity.to_dict()))) == activity


@pytest.mark.parametrize(
    "lie",
    [
        None,
        "restoring",
        ["restoring"],
        {},
        {"doing": "\x1b[2J"},
        {"doing": ["restoring"]},
        {"doing": "restoring", "done": -1, "total": 5},
        {"doing": "restoring", "done": 6, "total": 5},
        {"doing": "restoring", "done": 0, "total": 1 << 70},
        {"doing": "restoring", "done": True, "total": True},
        {"doing": "restoring", "done": 1.5, "total": 2.5},
        {"doing": "restoring", "done": "1", "total": "\x1b[2J"},
    ],
)
def test_lies_are_nothing(lie: Any) -> None:
    assert Activity.from_dict(lie) is None


def test_a_rank_tells_what_its_machine_does() -> None:
    activity = Activity(Doing.RESTORING, 1, 2)
    rank = rank_status(RankRecord(0, 1, "vm", activity=activity), wanted=1, alive=["vm"])
    assert (rank.state, rank.reason) == (State.RUNNING, activity.text)


def test_of_ranks_that_run_the_one_in_trouble_is_told() -> None:
    trouble = Activity(Doing.LOG_FULL)
    records = [RankRecord(0, 1, "vm-0"), RankRecord(1, 1, "vm-1", activity=trouble)]
    status = task_status(records, wanted=2, alive=["vm-0", "vm-1"])
    assert status.reason == f"rank 1: {trouble.text}"
    assert status.activity == trouble
