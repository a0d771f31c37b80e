"""Tasks in a bucket of the user's: their things come and go, and nothing else is touched."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn import clouds
from sojourn.clouds.gcp.locations import parse_container
from sojourn.core.context import Context
from sojourn.core.errors import Conflict, InvalidInput, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.task import Storage, Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User

_LEFT = ["bucket shared", "object shared/mine/file"]


@pytest.fixture
def bucket(project: SimGCP, user: User) -> Any:
    """In another region than tasks, with a file of the user's; what it has of policies stays."""
    user.make_bucket("shared", location="europe-north1")
    user.store("shared").put("mine/file", b"mine")
    before = user.call("GET", "storage", "storage/v1/b/shared/iam", optionsRequestedPolicyVersion=3)
    yield "shared"
    now = user.call("GET", "storage", "storage/v1/b/shared/iam", optionsRequestedPolicyVersion=3)
    assert now["bindings"] == before["bindings"]


def _created(container: str) -> sojourn.Handle:
    return sojourn.create(Task("#!/bin/sh\n", cloud="gcp", storage=Storage(container=container)))


def _names(project: SimGCP) -> set[str]:
    return set(project.buckets.all["shared"].objects)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("container", "prefix"), [("shared", "{id}/"), ("shared/a/b", "a/b/"), ("shared/", "")]
)
def test_a_task_has_its_place_in_the_bucket_and_leaves_the_rest_alone(
    project: SimGCP, container: str, prefix: str
) -> None:
    handle = _created(container)
    inside = prefix.format(id=handle.id)
    assert f"{inside}task.json" in _names(project)
    assert all(name.startswith(inside) for name in _names(project) - {"mine/file"})
    assert [found.id for found in sojourn.list_tasks()] == [handle.id]
    assert sojourn.get(handle.id).task().storage.container == container
    sojourn.get(handle.id).delete()
    assert sojourn.list_tasks() == []
    assert project.inventory() == _LEFT


@pytest.mark.usefixtures("bucket")
def test_files_whose_names_begin_like_ours_stay(project: SimGCP, user: User) -> None:
    handle = _created("shared/")
    others = {"followers/2024.csv", "follow-up.csv", "follow.me", "task.json.bak", "logs.txt"}
    for name in others:
        user.store("shared").put(name, b"mine")
    list(handle.logs())
    clouds.load("gcp").data(TaskId.parse(handle.id)).watch(Context())
    assert "follow" in _names(project)
    handle.delete()
    assert _names(project) == {"mine/file", *others}


@pytest.mark.usefixtures("bucket")
def test_two_tasks_in_one_bucket_do_not_see_each_other(project: SimGCP) -> None:
    one, two = _created("shared"), _created("shared")
    assert {found.id for found in sojourn.list_tasks()} == {one.id, two.id}
    one.delete()
    assert [found.id for found in sojourn.list_tasks()] == [two.id]
    assert f"{two.id}/task.json" in _names(project)
    two.delete()
    assert project.inventory() == _LEFT


@pytest.mark.usefixtures("bucket")
def test_two_tasks_cannot_have_the_same_path(project: SimGCP) -> None:
    one = _created("shared/path")
    before = project.inventory()
    with pytest.raises(Conflict, match=one.id):
        _created("shared/path")
    assert project.inventory() == before
    one.delete()
    assert project.inventory() == _LEFT


@pytest.mark.usefixtures("bucket")
def test_a_path_where_something_else_is_is_refused(project: SimGCP, user: User) -> None:
    user.store("shared").put("used/logs/mine", b"mine")
    before = project.inventory()
    with pytest.raises(Conflict, match="used/logs/"):
        _created("shared/used")
    assert project.inventory() == before


@pytest.mark.usefixtures("bucket")
def test_a_deletion_that_breaks_off_can_be_repeated(project: SimGCP) -> None:
    handle = _created("shared")
    project.fail("storage:objects.delete", code="forbidden", status=403)
    with pytest.raises(sojourn.SojournError):
        handle.delete()
    assert [found.id for found in sojourn.list_tasks()] == [handle.id]
    sojourn.get(handle.id).delete()
    assert project.inventory() == _LEFT


@pytest.mark.usefixtures("bucket")
def test_all_versions_go_with_the_task(project: SimGCP, user: User) -> None:
    user.call("PATCH", "storage", "storage/v1/b/shared", {"versioning": {"enabled": True}})
    handle = _created("shared")
    sojourn.get(handle.id).delete()
    found = user.call("GET", "storage", "storage/v1/b/shared/o", versions="true")
    assert [item["name"] for item in found["items"]] == ["mine/file"]
    assert project.inventory() == _LEFT


@pytest.mark.usefixtures("bucket")
def test_a_task_in_any_zone_is_found_by_its_id(project: SimGCP) -> None:
    storage = Storage(container="shared")
    task = Task("#!/bin/sh\n", cloud="gcp", region="asia-east1-a", storage=storage)
    handle = sojourn.create(task)
    sojourn.get(handle.id, cloud="gcp").delete()
    with pytest.raises(NotFound):
        sojourn.get(handle.id, cloud="gcp").status()
    sojourn.get(handle.id, cloud="gcp").delete()  # there is nothing left to do
    assert project.inventory() == _LEFT


def _refused(container: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        _created(container)
    assert caught.value.path == "storage.container"
    return caught.value


def test_a_bucket_that_is_missing_is_told_before_anything_is_made(project: SimGCP) -> None:
    assert "bucket missing not found; create it first" in _refused("missing").message
    assert project.inventory() == []


def test_a_bucket_of_somebody_else_is_refused(project: SimGCP) -> None:
    project.foreign_bucket("theirs")
    assert "access to bucket theirs denied" in _refused("theirs/x").message
    assert project.inventory() == []


def test_a_bucket_without_uniform_access_is_told_with_what_changes_it(
    project: SimGCP, user: User
) -> None:
    """Conditions, which keep machines out of the rest, need it."""
    user.make_bucket("old", iamConfiguration={"uniformBucketLevelAccess": {"enabled": False}})
    message = _refused("old").message
    command = "gcloud storage buckets update gs://old --uniform-bucket-level-access"
    assert f"run `{command}`" in message
    assert project.inventory() == ["bucket old"]


def test_options_that_nobody_knows_are_refused(project: SimGCP) -> None:
    storage = Storage(container="shared", container_opts={"account": "x", "key": "y"})
    with pytest.raises(InvalidInput, match="account, key") as caught:
        sojourn.create(Task("#!/bin/sh\n", cloud="gcp", storage=storage))
    assert caught.value.path == "storage.container_opts"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("bucket", ("bucket", None)),
        ("bucket/", ("bucket", "")),
        ("bucket/a", ("bucket", "a")),
        ("bucket/a/b/", ("bucket", "a/b")),
        ("my.domain_x/a=1/+@:", ("my.domain_x", "a=1/+@:")),
    ],
)
def test_containers_as_users_write_them(given: str, found: tuple[str, str | None]) -> None:
    assert parse_container(given) == found


@pytest.mark.parametrize(
    "given", ["", "A", "gs://bucket", "bucket/a'b", "bucket/../x", "bucket/a//b", "b/" + "x" * 600]
)
def test_containers_that_cannot_be(given: str) -> None:
    with pytest.raises(InvalidInput, match="must be a bucket or bucket/path"):
        parse_container(given)
