"""Places in buckets of the user's: written in one way, and apart from each other."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sojourn.clouds.aws import locations as aws
from sojourn.clouds.aws.policy import machine_policy
from sojourn.clouds.az import locations as az
from sojourn.clouds.az.policy import on_store
from sojourn.clouds.gcp import locations as gcp
from sojourn.clouds.vm.containers import ancestors, overlap
from sojourn.clouds.vm.paths import LISTED, NAMES, SEED
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.storage import layout
from tests.simcloud.aws import policy
from tests.simcloud.az.conditions import Asked, parse

PARSERS = [aws.parse_container, gcp.parse_container, az.parse_container]
parsers = pytest.mark.parametrize("parse_container", PARSERS)
part = st.sampled_from(["a", "b", "a.b", "x=1", "logs", "workdir", "task.json", "A", "..", "."])
folders = st.lists(st.sampled_from(["a", "b", "ab", "a-b", "x", "y=1"]), max_size=4).map("/".join)
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"


@parsers
@given(st.lists(part, max_size=4), st.integers(0, 3), st.integers(0, 3))
def test_a_place_is_written_in_one_way(
    parse_container: Any, parts: list[str], before: int, after: int
) -> None:
    text = f"box/{'/' * before}{'/'.join(parts)}{'/' * after}"
    try:
        name, folder = parse_container(text)
    except InvalidInput:
        assert {".", ".."} & set(parts)
        return
    assert (name, folder) == ("box", "/".join(parts))
    assert parse_container(f"{name}/{folder}") == (name, folder)


@parsers
@given(st.text(alphabet="ab./-_=*?'$ä\n", max_size=12))
def test_nothing_that_could_mean_something_else_in_a_policy_passes(
    parse_container: Any, text: str
) -> None:
    with suppress(InvalidInput):
        _, folder = parse_container(f"box/{text}")
        assert folder is not None
        assert not set(folder) & set("*?'$ä\n")
        assert not {"", ".", ".."} & set(folder.split("/") if folder else ())


@given(folders, folders)
def test_folders_overlap_if_one_is_in_the_other(one: str, other: str) -> None:
    inside = other in (*ancestors(one), one) or one in ancestors(other)
    assert overlap(one, other) == overlap(other, one) == inside
    assert overlap(one, one)
    assert overlap("", one)


def _readable(where: str, path: str) -> list[bool]:
    """Whether machines of a task in this folder can read an object, and list by its name."""
    id = TaskId.for_name("a", {})  # noqa: A001
    role = [machine_policy(id, aws.Location("us-west-1", "box", where, contained=True))]
    store = "arn:aws:s3:::box"
    grants = on_store("/c", az.Location("eastus", "account", "box", where, contained=True))
    conditions = [parse(each.condition) for each in grants]
    blob = Asked(f"{_BLOBS}/read", attributes={"path": path})
    blobs = Asked(f"{_BLOBS}/read", "Blob.List", {"prefix": path})
    return [
        policy.allowed(role, "s3:GetObject", f"{store}/{path}", {}),
        policy.allowed(role, "s3:ListBucket", store, {"s3:prefix": [path]}),
        any(condition(blob) for condition in conditions),
        any(condition(blobs) for condition in conditions),
    ]


@settings(max_examples=40)
@given(folders, folders)
def test_machines_read_their_own_folder_and_no_other_be_it_inside(one: str, other: str) -> None:
    """What is in a folder of a name that a store uses is refused before: see `Folder`."""
    assume(one != other)
    inside, other_inside = (f"{folder}/" if folder else "" for folder in (one, other))
    assert _readable(one, f"{inside}{layout.ENVIRONMENT}")[::2] == [True, True]
    for name in (*NAMES, SEED):
        assert not any(_readable(one, f"{other_inside}{name}"))
        assert not any(_readable(one, f"{other_inside}{name}/x"))
    for name in LISTED:
        assert _readable(one, f"{inside}{name}")[1::2] == [True, True]
    assert not any(_readable(one, f"{inside}{SEED}"))
    assert _readable(one, inside)[1::2] == [False, False]
