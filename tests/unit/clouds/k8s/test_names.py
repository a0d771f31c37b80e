"""Labels by the rules of Kubernetes, and all else in an annotation."""

from __future__ import annotations

import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.clouds.k8s import names
from sojourn.core.ids import TaskId
from sojourn.core.task import Task

_ID = TaskId.deterministic("test")
# From Kubernetes' documentation, one rule after the other.
_NAME = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z")
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")


def _valid_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (
        0 < len(prefix) <= 253
        and all(_LABEL.match(part) and len(part) <= 63 for part in prefix.split("."))
    ):
        return False
    return 0 < len(name) <= 63 and bool(_NAME.match(name))


def _valid_value(value: str) -> bool:
    return not value or (len(value) <= 63 and bool(_NAME.match(value)))


_texts = st.one_of(
    st.text(max_size=70),
    st.text("abzAZ09._-/é٣\n", max_size=70),
    st.from_regex(r"[a-z0-9.-]{1,260}/[A-Za-z0-9._-]{1,64}", fullmatch=True),
)


def _made(tags: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    found = names.metadata(_ID, "x", Task(script="#!/bin/sh\n", tags=tags), rank="0")
    others = json.loads(found.get("annotations", {}).get("sojourn/tags", "{}"))
    return found["labels"], others


@settings(max_examples=60)
@given(st.dictionaries(_texts, _texts, max_size=4))
def test_labels_are_valid_and_no_tag_is_lost(tags: dict[str, str]) -> None:
    labels, others = _made(tags)
    assert all(_valid_key(key) and _valid_value(value) for key, value in labels.items())
    assert labels[names.ID] == str(_ID)
    assert labels[names.RANK] == "0"
    for key, value in tags.items():
        assert (labels.get(key) if key in labels and key not in others else others[key]) == value


@given(
    st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?", fullmatch=True),
    st.from_regex(r"([a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?)?", fullmatch=True),
)
def test_what_is_valid_is_a_label(key: str, value: str) -> None:
    if key in ("job-name", "controller-uid"):
        return
    assert _made({f"example.com/{key}": value}) == (
        {**_made({})[0], f"example.com/{key}": value},
        {},
    )
    assert _made({key: value})[0][key] == value


def test_reserved_names_are_not_taken() -> None:
    tags = {
        "sojourn/id": "other",
        "app.kubernetes.io/managed-by": "me",
        "job-name": "x",
        "batch.kubernetes.io/job-name": "x",
        "app.kubernetes.io/name": "mine",
    }
    labels, others = _made(tags)
    assert labels.pop("app.kubernetes.io/name") == "mine"
    assert labels == _made({})[0]
    assert set(others) == set(tags) - {"app.kubernetes.io/name"}


def test_selectors_and_names() -> None:
    assert names.of_task(_ID, role="machine") == f"sojourn/id={_ID},sojourn/role=machine"
    assert names.job_name(_ID, 3) == f"{_ID}-3"
    longest = TaskId.deterministic("n" * 200)
    # A Job's pods have host names of at most 63 characters: its name and the number of the pod.
    assert len(f"{names.job_name(longest, 999)}-999") <= 63
    assert "annotations" not in names.metadata(_ID, "x", None)
