"""Tasks in a bucket of the user's: their things come and go, and nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sojourn
from sojourn import clouds
from sojourn.clouds.aws import tags
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.policy import FOR_MACHINES
from sojourn.core.context import Context
from sojourn.core.errors import Conflict, InvalidInput, NotFound
from sojourn.core.events import Event, Warned
from sojourn.core.ids import TaskId
from sojourn.core.task import Storage, Task
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import allow

pytestmark = pytest.mark.slow  # each looks for tasks in many regions


@pytest.fixture
def bucket(laptop: SimAWS) -> str:
    """In another region than tasks, with a file of the user's."""
    backends.s3().create_bucket("shared", "eu-north-1")
    backends.s3().put_object("shared", "mine/file", b"mine")
    return "shared"


def _created(container: str) -> sojourn.Handle:
    return sojourn.create(Task("#!/bin/sh\n", cloud="aws", storage=Storage(container=container)))


def _keys() -> set[str]:
    return set(backends.s3().buckets["shared"].keys)


@pytest.fixture
def empty_at_the_end(laptop: SimAWS, bucket: str) -> Any:
    yield
    assert laptop.inventory() == ["bucket shared", "object shared/mine/file"]


def test_a_role_that_alone_is_left_is_found_by_its_id(laptop: SimAWS, bucket: str) -> None:
    left = TaskId.deterministic("left")
    iam = Account().client("iam", "us-east-1")
    trusted = json.dumps(FOR_MACHINES)
    iam.create_role(RoleName=str(left), Path=tags.ROLE_PATH, AssumeRolePolicyDocument=trusted)
    assert sojourn.list_tasks() == []
    sojourn.get(str(left)).delete()
    assert laptop.inventory() == ["bucket shared", "object shared/mine/file"]
    with pytest.raises(NotFound, match=r"Task .* not found"):
        sojourn.get(str(left))


def test_files_whose_names_begin_like_ours_stay(laptop: SimAWS, bucket: str) -> None:
    handle = _created("shared/")
    others = {"followers/2024.csv", "follow-up.csv", "follow.me", "task.json.bak", "logs.txt"}
    for key in others:
        backends.s3().put_object("shared", key, b"mine")
    list(handle.logs())
    clouds.load("aws").data(TaskId.parse(handle.id)).watch(Context())
    assert "follow" in _keys()
    handle.delete()
    assert _keys() == {"mine/file", *others}


@pytest.mark.parametrize(
    ("container", "prefix"), [("shared", "{id}/"), ("shared/a/b", "a/b/"), ("shared/", "")]
)
@pytest.mark.usefixtures("empty_at_the_end")
def test_a_task_has_its_place_in_the_bucket_and_leaves_the_rest_alone(
    container: str, prefix: str
) -> None:
    handle = _created(container)
    inside = prefix.format(id=handle.id)
    assert f"{inside}task.json" in _keys()
    assert all(key.startswith(inside) for key in _keys() - {"mine/file"})
    assert [found.id for found in sojourn.list_tasks()] == [handle.id]
    assert sojourn.get(handle.id).task().storage.container == container
    sojourn.get(handle.id).delete()
    assert sojourn.list_tasks() == []


@pytest.mark.usefixtures("empty_at_the_end")
def test_two_tasks_in_one_bucket_do_not_see_each_other() -> None:
    one, two = _created("shared"), _created("shared")
    assert {found.id for found in sojourn.list_tasks()} == {one.id, two.id}
    one.delete()
    assert [found.id for found in sojourn.list_tasks()] == [two.id]
    assert f"{two.id}/task.json" in _keys()
    two.delete()


@pytest.mark.usefixtures("empty_at_the_end")
def test_two_tasks_cannot_have_the_same_path() -> None:
    one = _created("shared/path")
    before = _keys()
    with pytest.raises(Conflict, match=one.id):
        _created("shared/path")
    assert _keys() == before
    one.delete()


def test_a_path_where_something_else_is_is_refused(laptop: SimAWS, bucket: str) -> None:
    backends.s3().put_object("shared", "used/logs/mine", b"mine")
    before = laptop.inventory()
    with pytest.raises(Conflict, match="used/logs/"):
        _created("shared/used")
    assert laptop.inventory() == before


@pytest.mark.usefixtures("empty_at_the_end")
def test_a_deletion_that_breaks_off_can_be_repeated(laptop: SimAWS) -> None:
    handle = _created("shared")
    laptop.fail("s3:DeleteObjects", code="AccessDenied", status=403, times=1)
    with pytest.raises(sojourn.SojournError):
        handle.delete()
    assert [found.id for found in sojourn.list_tasks()] == [handle.id]
    sojourn.get(handle.id).delete()


@pytest.mark.usefixtures("empty_at_the_end")
def test_a_task_in_a_region_where_nobody_looks_first_is_found_by_its_id() -> None:
    task = Task(
        "#!/bin/sh\n", cloud="aws", region="ap-south-1", storage=Storage(container="shared")
    )
    handle = sojourn.create(task)
    sojourn.get(handle.id, cloud="aws").delete()
    with pytest.raises(NotFound):
        sojourn.get(handle.id, cloud="aws").status()
    sojourn.get(handle.id, cloud="aws").delete()  # there is nothing left to do


def test_a_task_that_is_nowhere_is_looked_for_once(laptop: SimAWS) -> None:
    absent = sojourn.get(str(TaskId.deterministic("absent")), cloud="aws")
    assert not absent.exists()
    regions = [call.region for call in laptop.calls if call.name == "ec2:DescribeSecurityGroups"]
    assert len(regions) == len(set(regions)) > 4


def test_a_bucket_that_is_missing_is_told_before_anything_is_made(laptop: SimAWS) -> None:
    with pytest.raises(InvalidInput, match="bucket missing not found") as caught:
        _created("missing")
    assert caught.value.path == "storage.container"
    assert laptop.inventory() == []


def test_a_bucket_of_somebody_else_is_refused(laptop: SimAWS) -> None:
    laptop.foreign_bucket("theirs")
    with pytest.raises(InvalidInput, match=r"access to bucket .* denied") as caught:
        _created("theirs/x")
    assert caught.value.path == "storage.container"
    assert laptop.inventory() == []


def test_options_that_nobody_knows_are_refused(laptop: SimAWS, bucket: str) -> None:
    storage = Storage(container="shared", container_opts={"account": "x", "key": "y"})
    with pytest.raises(InvalidInput, match="account, key") as caught:
        sojourn.create(Task("#!/bin/sh\n", cloud="aws", storage=storage))
    assert caught.value.path == "storage.container_opts"


@pytest.mark.parametrize("colons", [2, 1])
def test_a_profile_of_the_users_is_used_and_left_alone(laptop: SimAWS, colons: int) -> None:
    """With one colon: as pages of Terraform Provider Iterative write it."""
    iam = backends.iam()
    iam.create_role("mine", "{}", "/", None, "", [], 3600)
    iam.put_role_policy("mine", "given", json.dumps(allow("s3:*", "autoscaling:*")))
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    before = laptop.inventory()
    given = profile.arn.replace("::", ":" * colons)
    events: list[Event] = []
    handle = sojourn.create(
        Task("#!/bin/sh\n", cloud="aws", permission_set=given, storage=Storage()),
        on_event=events.append,
    )
    assert not any(line.startswith(("role tpi", "profile tpi")) for line in laptop.inventory())
    ec2 = Account().client("ec2", "us-west-1")
    found = ec2.describe_launch_template_versions(LaunchTemplateName=handle.id)
    data = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    assert data["IamInstanceProfile"] == {"Arn": profile.arn}
    notes = [event.message for event in events if isinstance(event, Warned)]
    assert any(f"Using {profile.arn} as permission_set" in note for note in notes) == (colons == 1)
    sojourn.get(handle.id).delete()
    assert laptop.inventory() == before
