"""Buckets of strangers that have the name of a task: never used, never deleted."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.events import Event, Warned
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS

_NAME = str(TaskId.for_name("it", {}))


@pytest.fixture
def theirs(laptop: SimAWS) -> dict[str, bytes]:
    """One that everybody may read and write, with a task in it that somebody prepared."""
    laptop.foreign_bucket(_NAME, open=True)
    content = {"task.json": b"{}", "laptop/seed": b"known"}
    for path, data in content.items():
        backends.s3().put_object(_NAME, path, data)
    return content


def _content() -> dict[str, bytes]:
    found = backends.s3().buckets[_NAME].keys
    return {key: item.value for key, item in found.items()}


@pytest.mark.slow  # it looks for the task in many regions
def test_a_strangers_bucket_is_no_task(laptop: SimAWS, theirs: dict[str, bytes]) -> None:
    handle = sojourn.get(_NAME, cloud="aws")
    for look in (handle.status, lambda: list(handle.logs()), handle.pull, handle.stop):
        with pytest.raises(NotFound):
            look()
    with pytest.raises(NotFound, match="belongs to another account"):
        handle.task()
    assert sojourn.list_tasks() == []
    handle.delete()
    assert _content() == theirs
    read = [call.name for call in laptop.calls if call.service == "s3" and not call.error]
    assert set(read) <= {"s3:ListBuckets"}


def test_no_task_is_created_in_a_strangers_bucket(laptop: SimAWS, theirs: dict[str, bytes]) -> None:
    before = laptop.inventory()
    with pytest.raises(Conflict, match="belongs to another account"):
        sojourn.create(Task("#!/bin/sh\n", cloud="aws", name="it"))
    assert (laptop.inventory(), _content()) == (before, theirs)


def test_a_bucket_that_a_stranger_took_over_is_left_when_all_else_is_deleted(
    laptop: SimAWS,
) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", name="it"))
    backends.s3().buckets[_NAME].keys.clear()
    backends.s3().delete_bucket(_NAME)
    laptop.foreign_bucket(_NAME, open=True)
    backends.s3().put_object(_NAME, "mine", b"theirs")
    said: list[Event] = []
    sojourn.get(handle.id, cloud="aws", on_event=said.append).delete(force=True)
    warnings = [event.message for event in said if isinstance(event, Warned)]
    assert f"Bucket {_NAME} belongs to another account; it was not touched" in warnings
    assert laptop.inventory() == [f"bucket {_NAME}", f"object {_NAME}/mine"]
    assert _content() == {"mine": b"theirs"}
