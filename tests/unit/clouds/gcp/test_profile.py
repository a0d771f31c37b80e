"""A service account of the user's for machines, and what their tokens are good for."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.clouds.gcp.profile import notes_on, parse_profile
from sojourn.core.events import Event, Note
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User

_EMAIL = "a@b.iam.gserviceaccount.com"
_AUTH = "https://www.googleapis.com/auth/"


def test_without_scopes_a_token_is_good_for_all_that_the_account_may() -> None:
    assert parse_profile(_EMAIL, "p").scopes == (f"{_AUTH}cloud-platform",)


@pytest.mark.parametrize(
    "given",
    [
        f"{_EMAIL},scopes=storage-rw,compute-rw",
        f"{_EMAIL}, scopes=storage-rw, compute-rw",
        f"{_EMAIL},scopes={_AUTH}devstorage.read_write,{_AUTH}compute,compute-rw",
    ],
)
def test_scopes_by_their_short_names_and_in_full(given: str) -> None:
    found = parse_profile(given, "p")
    assert (found.email, found.scopes) == (
        _EMAIL,
        (f"{_AUTH}devstorage.read_write", f"{_AUTH}compute"),
    )
    [note] = notes_on(given, "p")
    assert "must be allowed what machines do: roles/storage.objectUser" in note


def test_machines_can_always_leave_their_group() -> None:
    given = f"{_EMAIL},scopes=storage-full"
    scopes = parse_profile(given, "p").scopes
    assert scopes == (f"{_AUTH}devstorage.full_control", f"{_AUTH}compute")
    _, note = notes_on(given, "p")
    assert "Adding the scope compute-rw" in note


def test_project_id_stands_for_the_project_as_pages_write_it() -> None:
    given = "sa-name@project_id.iam.gserviceaccount.com,scopes=storage-rw"
    assert parse_profile(given, "mine").email == "sa-name@mine.iam.gserviceaccount.com"
    assert "Using sa-name@mine.iam.gserviceaccount.com" in notes_on(given, "mine")[1]


@pytest.mark.parametrize("scopes", ["", ",scopes=storage-rw"])
def test_an_account_of_the_users_is_used_and_left_alone(
    project: SimGCP, user: User, scopes: str
) -> None:
    email = user.make_account()
    before = project.inventory()
    policy = user.policy()
    events: list[Event] = []
    task = Task("#!/bin/sh\n", cloud="gcp", permission_set=f"{email}{scopes}")
    handle = sojourn.create(task, on_event=events.append)
    assert not any("service account tpi-" in line for line in project.inventory())
    assert not any(line.startswith("binding") for line in project.inventory())
    template = user.get(f"global/instanceTemplates/{handle.id}")["properties"]
    [given] = template["serviceAccounts"]
    assert given["email"] == email
    notes = [event.message for event in events if isinstance(event, Note)]
    assert any("Adding the scope compute-rw" in note for note in notes) == bool(scopes)
    assert {f"{_AUTH}compute", f"{_AUTH}cloud-platform"} & set(given["scopes"])
    sojourn.get(handle.id).delete(fetch=False)
    assert project.inventory() == before
    assert user.policy()["bindings"] == policy["bindings"]
