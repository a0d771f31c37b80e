"""Names that users give, and names that we make."""

from __future__ import annotations

import re

import pytest

from sojourn.clouds.az import profile, tags
from sojourn.clouds.az.locations import account_name, parse_container
from sojourn.clouds.az.machine_types import replacement, size
from sojourn.clouds.az.machines import parse_image
from sojourn.clouds.az.regions import region
from sojourn.core.errors import InvalidInput
from sojourn.core.ids import TaskId
from sojourn.core.task import Storage, Task
from tests.simcloud.az.catalogue import SIZES
from tests.simcloud.az.names import check_account_name

ID = TaskId.deterministic("names")
IDENTITY = (
    "/subscriptions/0-1/resourceGroups/g/providers/Microsoft.ManagedIdentity"
    "/userAssignedIdentities/one"
)


@pytest.mark.parametrize(
    ("given", "meant"),
    [("us-west", "westus2"), ("eu-north", "northeurope"), ("West US 2", "westus2")],
)
def test_regions(given: str, meant: str) -> None:
    assert region(given) == meant


def test_a_region_of_another_cloud_is_none() -> None:
    with pytest.raises(InvalidInput, match=r"^region: unknown region 'us-west-1'.*such as eastus"):
        region("us-west-1")


def test_sizes_by_their_common_names_exist() -> None:
    for name in ("s", "m", "l", "xl", "m+t4", "l+t4", "m+k80", "xl+v100", "m+a10", "xl+a100"):
        assert size(name) in SIZES
    assert size("Standard_D4s_v5") == "Standard_D4s_v5"
    with pytest.raises(InvalidInput, match=r"Azure has no xl\+t4; use m\+t4 or l\+t4"):
        size("xl+t4")
    with pytest.raises(InvalidInput, match=r"unknown machine type 'm5\.large'"):
        size("m5.large")


@pytest.mark.parametrize("name", ["m+k80", "l+v100", "Standard_NC24rs_v3", "Standard_NC6s_v2"])
def test_what_is_withdrawn_has_a_replacement(name: str) -> None:
    found = replacement(size(name))
    assert found
    assert "m+t4" in found[1]


@pytest.mark.parametrize("name", ["m+t4", "m+a100", "m", "Standard_NC4as_T4_v3"])
def test_what_is_not_withdrawn_has_none(name: str) -> None:
    assert replacement(size(name)) is None


@pytest.mark.parametrize("end", ["", "#plan", ":#plan"])
def test_images_as_the_old_provider_had_them(end: str) -> None:
    found = parse_image(f"me@nvidia:ngc:gen2:1.2.3{end}")
    assert (found.user, found.urn) == ("me", "nvidia:ngc:gen2:1.2.3")


def test_an_image_without_a_user_has_the_usual_one() -> None:
    found = parse_image("Canonical:a:b:latest")
    assert (found.user, found.urn) == ("ubuntu", "Canonical:a:b:latest")


@pytest.mark.parametrize("text", ["debian", "a:b:latest", "u@a:b:c", "u@a:b:c:d:e"])
def test_what_is_no_image(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"must be \{user\}@\{publisher\}"):
        parse_image(text)


def test_the_name_of_a_storage_account_depends_on_the_subscription() -> None:
    one, two = account_name("one", ID), account_name("two", ID)
    assert one != two
    assert one == account_name("one", ID)
    assert not check_account_name(one)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("box", ("box", None)),
        ("box/", ("box", "")),
        ("box/a/b", ("box", "a/b")),
        ("box/a/b/", ("box", "a/b")),
    ],
)
def test_containers(text: str, meant: tuple[str, str | None]) -> None:
    assert parse_container(text) == meant


@pytest.mark.parametrize(
    "text", ["", "a", "Box", "a--b", "box/../a", "box/a//b", "box/'", "x" * 64]
)
def test_what_is_no_container(text: str) -> None:
    """A quote could end the text of a condition."""
    with pytest.raises(InvalidInput, match=re.escape("storage.container: must be a container")):
        parse_container(text)


def test_identities() -> None:
    assert profile.identities("") == ()
    other = IDENTITY.replace("one", "two")
    assert profile.identities(f"{IDENTITY}, {other}") == (IDENTITY, other)
    with pytest.raises(InvalidInput, match=r"permission_set: must be a comma-separated list"):
        profile.identities(f"{IDENTITY},arn:aws:iam::1:instance-profile/x")


def test_tags() -> None:
    storage = Storage(container="box/a", container_opts={"account": "acc", "key": "secret"})
    task = Task("#!/bin/sh", name="a name", tags={"team": "a/b"}, storage=storage)
    tags.check(task)
    found = tags.tags_of(ID, task)
    assert found["team"] == "a/b"
    assert found[tags.ID] == str(ID)
    assert (found[tags.ACCOUNT], found[tags.CONTAINER]) == ("acc", "box/a")
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"a/b": "x"}, "must not contain"),
        ({"Azure-x": "x"}, "reserved"),
        ({"sojourn:id": "x"}, "reserved"),
        ({"a": "x" * 257}, "at most 256"),
        ({"a": "1", "A": "2"}, "ignores case"),
        ({str(n): "" for n in range(43)}, "at most 42"),
    ],
)
def test_tags_that_azure_would_refuse(given: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        tags.check(Task("#!/bin/sh", tags=given))


def test_images_tell_what_they_are_by_tags() -> None:
    storage = Storage(container="box", container_opts={"account": "anaccount"})
    task = Task("#!/bin/sh", image="u@a:b:c:latest", storage=storage, tags={"mine": "yes"})
    plan = {"publisher": "a", "product": "b", "name": "c"}
    made = tags.image_tags(ID, task, "tools", "u", plan, "2026-01-31T00:00:00Z")
    assert made.pop("sojourn:version")
    assert made == {
        "mine": "yes",
        "sojourn:id": str(ID),
        "sojourn:image": "tools",
        "sojourn:created": "2026-01-31T00:00:00Z",
        "sojourn:base": "u@a:b:c:latest",
        "sojourn:user": "u",
        "sojourn:plan": "a:b:c",
    }
    assert dict(tags.parse_plan(made["sojourn:plan"])) == plan
    assert tags.parse_plan("") == tags.parse_plan("somebody's own") == ()


def test_an_image_can_have_all_tags_of_its_task() -> None:
    """Azure takes 50."""
    task = Task("#!/bin/sh", tags={f"tag{number}": "x" for number in range(tags.MOST)})
    made = tags.image_tags(ID, task, "x", "u", {"publisher": "a", "product": "b", "name": "c"}, "")
    assert len({**made, tags.READY: "yes"}) == 50
