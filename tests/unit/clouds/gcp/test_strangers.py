"""Buckets of strangers that have the name of a task: never used, never deleted."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User

_NAME = str(TaskId.for_name("it", {}))


@pytest.fixture
def theirs(project: SimGCP, user: User) -> list[str]:
    """One that everybody may read and write, with a task in it that somebody prepared."""
    project.foreign_bucket(_NAME, open=True)
    content = ["laptop/seed", "task.json"]
    for path in content:
        user.store(_NAME).put(path, b"{}")
    return content


def _content(project: SimGCP) -> list[str]:
    return sorted(project.buckets.all[_NAME].objects)


def test_a_strangers_bucket_is_no_task(project: SimGCP, theirs: list[str]) -> None:
    handle = sojourn.get(_NAME, cloud="gcp")
    for look in (handle.status, lambda: list(handle.logs()), handle.pull, handle.stop):
        with pytest.raises(NotFound):
            look()
    with pytest.raises(NotFound, match="belongs to another project"):
        handle.task()
    assert sojourn.list_tasks() == []
    handle.delete()
    assert _content(project) == theirs


def test_no_task_is_created_in_a_strangers_bucket(project: SimGCP, theirs: list[str]) -> None:
    before = project.inventory()
    with pytest.raises(Conflict, match="belongs to another project"):
        sojourn.create(Task("#!/bin/sh\n", cloud="gcp", name="it"))
    assert (project.inventory(), _content(project)) == (before, theirs)
