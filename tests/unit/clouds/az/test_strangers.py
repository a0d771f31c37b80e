"""Storage accounts of strangers that have the name of a task's: never used, never deleted."""

from __future__ import annotations

import obstore
import pytest

import sojourn
from sojourn.clouds.az.locations import CONTAINER, account_name
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.ids import TaskId
from sojourn.core.status import INCOMPLETE
from sojourn.core.task import Task
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User

_TASK = Task("#!/bin/sh\n", cloud="az", name="it")


def test_an_account_that_a_stranger_took_over_is_not_the_tasks(
    laptop: SimAzure, user: User
) -> None:
    """It is outside of the task's group, and lets this user in."""
    handle = sojourn.create(_TASK)
    name = account_name(laptop.subscription, TaskId.parse(handle.id))
    kept = obstore.get(user.store(name, CONTAINER), "task.json").bytes()
    user.delete(f"resourceGroups/{handle.id}/providers/Microsoft.Storage/storageAccounts/{name}")
    user.make_container(user.make_group(), name, CONTAINER)
    theirs = user.store(name, CONTAINER)
    obstore.put(theirs, "task.json", bytes(kept))
    found = sojourn.get(handle.id, cloud="az")
    for look in (found.task, lambda: list(found.logs()), found.pull):
        with pytest.raises(NotFound):
            look()
    assert found.status() == INCOMPLETE
    found.delete(force=True)
    assert [each["path"] for each in obstore.list(theirs).collect()] == ["task.json"]


def test_no_task_is_created_in_a_strangers_account(laptop: SimAzure) -> None:
    laptop.foreign_account(account_name(laptop.subscription, TaskId.for_name("it", {})))
    with pytest.raises(Conflict, match="already taken"):
        sojourn.create(_TASK)
    assert laptop.inventory() == []
