"""A service account of the user's for machines, and what their tokens are good for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sojourn
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.cloud import GoogleCloud
from sojourn.clouds.gcp.profile import notes_on, parse_profile
from sojourn.core.errors import InvalidInput
from sojourn.core.events import Event, Warned
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User
from tests.support.warned import warnings_of

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
    assert notes_on(given, "p") == []


def test_machines_can_always_leave_their_group() -> None:
    given = f"{_EMAIL},scopes=storage-full"
    scopes = parse_profile(given, "p").scopes
    assert scopes == (f"{_AUTH}devstorage.full_control", f"{_AUTH}compute")
    [note] = notes_on(given, "p")
    assert "Adding the scope compute-rw" in note


def test_project_id_stands_for_the_project_as_pages_write_it() -> None:
    given = "sa-name@project_id.iam.gserviceaccount.com,scopes=storage-rw"
    assert parse_profile(given, "mine").email == "sa-name@mine.iam.gserviceaccount.com"
    assert "Using sa-name@mine.iam.gserviceaccount.com" in notes_on(given, "mine")[0]


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
    notes = [event.message for event in events if isinstance(event, Warned)]
    assert any("Adding the scope compute-rw" in note for note in notes) == bool(scopes)
    assert {f"{_AUTH}compute", f"{_AUTH}cloud-platform"} & set(given["scopes"])
    sojourn.get(handle.id).delete(fetch=False)
    assert project.inventory() == before
    assert user.policy()["bindings"] == policy["bindings"]


@pytest.fixture
def troubleshooter(project: SimGCP, user: User) -> Iterator[str]:
    """An account of the user's, of which Google tells what it may do."""
    service = "projects/simulated-project/services/policytroubleshooter.googleapis.com"
    user.call("POST", "serviceusage", f"v1/{service}:enable")
    email = user.make_account()
    yield email
    user.unbind(f"serviceAccount:{email}")


def _look(email: str) -> list[str]:
    task = Task("#!/bin/sh\n", cloud="gcp", permission_set=email)
    return [each for each in warnings_of(GoogleCloud(Account()), task) if email in each]


def test_an_account_that_cannot_leave_its_group_is_refused_before_anything_is_made(
    project: SimGCP, user: User, troubleshooter: str
) -> None:
    user.bind("roles/storage.admin", f"serviceAccount:{troubleshooter}")
    task = Task("#!/bin/sh\n", cloud="gcp", permission_set=troubleshooter)
    with pytest.raises(InvalidInput, match=r"compute\.instanceGroupManagers\.update, which"):
        sojourn.create(task)
    assert not any("tpi-" in line for line in project.inventory())


def test_an_account_with_the_documented_role_is_taken(user: User, troubleshooter: str) -> None:
    user.bind("roles/compute.instanceAdmin.v1", f"serviceAccount:{troubleshooter}")
    assert _look(troubleshooter) == []


def test_what_a_condition_says_is_left_to_the_machine(user: User, troubleshooter: str) -> None:
    condition = "resource.name.startsWith('projects/simulated-project/zones/us-west1-b/')"
    user.bind("roles/compute.instanceAdmin.v1", f"serviceAccount:{troubleshooter}", condition)
    [note] = _look(troubleshooter)
    assert "Google Cloud could not tell" in note


def test_who_may_not_ask_is_told_once_and_goes_on(project: SimGCP, user: User) -> None:
    [note] = _look(user.make_account())
    assert "Could not check what" in note
    assert "not allowed compute.instanceGroupManagers.update, the first machine" in note
    assert "Run `gcloud services enable policytroubleshooter.googleapis.com`" in note
