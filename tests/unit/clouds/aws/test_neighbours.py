"""Tasks in one bucket of the user's: none reads what another has, wherever their folders are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.exceptions import ClientError

import sojourn
from sojourn.clouds.vm.paths import SEED
from sojourn.core.errors import AuthError, Conflict, NotFound
from sojourn.core.task import Storage, Task
from sojourn.storage import layout
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.simcloud.aws import backends, callers
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User

pytestmark = pytest.mark.slow  # each looks for tasks in many regions


@pytest.fixture
def bucket(laptop: SimAWS) -> str:
    backends.s3().create_bucket("shared", "us-west-1")
    return "shared"


def _created(container: str) -> sojourn.Handle:
    task = Task("#!/bin/sh\n", cloud="aws", storage=Storage(container=container))
    return sojourn.create(task)


def _keys(sim: SimAWS, role: str) -> dict[str, str]:
    found = callers.make_credentials(role, "i-0123456789abcdef0", "us-west-1", 3600)
    return {
        "AWS_ACCESS_KEY_ID": found.key_id,
        "AWS_SECRET_ACCESS_KEY": found.secret,
        "AWS_SESSION_TOKEN": found.token,
        "AWS_ENDPOINT_URL": sim.endpoint,
    }


def _refused(machine: User, path: str) -> None:
    with pytest.raises(ClientError) as caught:
        machine.s3.get_object(Bucket="shared", Key=path)
    assert caught.value.response["Error"]["Code"] == "AccessDenied"


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("shared", "shared/"),
        ("shared/", "shared"),
        ("shared/x/y", "shared/x"),
        ("shared/x", "shared//x/y/"),
    ],
)
def test_a_folder_that_encloses_another_tasks_or_is_inside_is_refused(
    laptop: SimAWS, first: str, second: str
) -> None:
    one = _created(first)
    before = laptop.inventory()
    with pytest.raises(Conflict, match=f"overlaps with that of the task {one.id}"):
        _created(second)
    assert laptop.inventory() == before
    beside = _created("shared/xy") if "x" in first else None
    one.delete()
    if beside:
        beside.delete()
    assert laptop.inventory() == ["bucket shared"]


@pytest.mark.parametrize("container", ["shared/", "shared/x"])
def test_a_machine_cannot_read_what_another_task_has_below_its_folder(
    laptop: SimAWS, bucket: str, container: str
) -> None:
    """As tasks of other accounts may, of which nobody here knows."""
    handle = _created(container)
    inside = container.partition("/")[2] + ("/" if container.endswith("x") else "")
    for path in (f"{inside}tpi-other/{layout.ENVIRONMENT}", f"{inside}a/b/{SEED}"):
        backends.s3().put_object(bucket, path, b"secret")
    machine = User(_keys(laptop, handle.id))
    _refused(machine, f"{inside}tpi-other/{layout.ENVIRONMENT}")
    _refused(machine, f"{inside}a/b/{SEED}")
    _refused(machine, f"{inside}{SEED}")
    for prefix in ("", inside, f"{inside}tpi-other/"):
        with pytest.raises(ClientError):
            machine.s3.list_objects_v2(Bucket=bucket, Prefix=prefix)
    own = machine.s3.get_object(Bucket=bucket, Key=f"{inside}{layout.ENVIRONMENT}")
    assert own["Body"].read()
    machine.close()
    handle.delete()


def _store(laptop: SimAWS, handle: sojourn.Handle) -> Store:
    """What a machine of a task in `shared/x` sees."""
    keys = _keys(laptop, handle.id)
    options = {
        "endpoint": keys["AWS_ENDPOINT_URL"],
        "region": "us-west-1",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True},
        "access_key_id": keys["AWS_ACCESS_KEY_ID"],
        "secret_access_key": keys["AWS_SECRET_ACCESS_KEY"],
        "token": keys["AWS_SESSION_TOKEN"],
    }
    return open_store(StoreAddress("s3://shared/x", options))


def test_a_machine_in_a_folder_learns_that_an_object_is_absent(laptop: SimAWS, bucket: str) -> None:
    """S3 denies access to what is absent, except to those who may list the whole bucket."""
    handle = _created("shared/x")
    store, path = _store(laptop, handle), layout.report_path(0, 1)
    assert store.head(path) is None
    store.put(layout.report_path(0, 2), b"{}")
    assert store.head(path) is None
    store.put(path, b"{}")
    found = store.head(path)
    assert found
    assert found.size == 2
    handle.delete()


_ASKED: dict[str, Callable[[Store, str], object]] = {
    "get": lambda store, path: store.get(path),
    "stream": lambda store, path: list(store.stream(path)),
    "get_ranges": lambda store, path: store.get_ranges(path, [(0, 1)]),
    "copy": lambda store, path: store.copy(path, f"{path}-2"),
}


@pytest.mark.parametrize("verb", _ASKED)
def test_every_verb_tells_a_machine_in_a_folder_what_is_absent(
    laptop: SimAWS, bucket: str, verb: str
) -> None:
    handle = _created("shared/x")
    store, path = _store(laptop, handle), layout.report_path(0, 1)
    store.put(layout.report_path(0, 2), b"{}")
    with pytest.raises(NotFound, match=f"^{path} not found in the store"):
        _ASKED[verb](store, path)
    store.delete([path])
    backends.s3().put_object(bucket, f"x/{SEED}", b"secret")
    with pytest.raises(AuthError):
        _ASKED[verb](store, SEED)
    store.put(path, b"{}")
    _ASKED[verb](store, path)
    handle.delete()
