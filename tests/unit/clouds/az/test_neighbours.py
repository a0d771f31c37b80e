"""Tasks in one container of the user's: none reads what another has, wherever their folders are."""

from __future__ import annotations

import obstore
import pytest
from obstore.exceptions import BaseError, PermissionDeniedError
from obstore.store import AzureStore

import sojourn
from sojourn.clouds.vm.paths import SEED
from sojourn.core.errors import Conflict
from sojourn.core.task import Storage, Task
from sojourn.storage import layout
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User

_AUDIENCE = "https://storage.azure.com"


@pytest.fixture
def container(laptop: SimAzure, user: User) -> str:
    user.make_container(user.make_group(), name="shared")
    return "shared"


def _created(container: str) -> sojourn.Handle:
    storage = Storage(container=container, container_opts={"account": "anaccount"})
    return sojourn.create(Task("#!/bin/sh\n", cloud="az", storage=storage))


@pytest.mark.usefixtures("container")
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
    laptop: SimAzure, first: str, second: str
) -> None:
    one = _created(first)
    before = laptop.inventory()
    with pytest.raises(Conflict, match=f"overlaps with that of the task {one.id}"):
        _created(second)
    assert laptop.inventory() == before
    one.delete()


@pytest.mark.usefixtures("container")
@pytest.mark.parametrize("container_of_task", ["shared/", "shared/x"])
def test_a_machine_cannot_read_what_another_task_has_below_its_folder(
    laptop: SimAzure, user: User, container_of_task: str
) -> None:
    """As tasks of other subscriptions may, of which nobody here knows."""
    handle = _created(container_of_task)
    inside = container_of_task.partition("/")[2] + ("/" if container_of_task[-1] == "x" else "")
    others = [f"{inside}tpi-other/{layout.ENVIRONMENT}", f"{inside}a/b/{SEED}"]
    admin = user.store(container="shared")
    for path in others:
        obstore.put(admin, path, b"secret")
    machine = _machine(laptop, handle.id)
    for path in (*others, f"{inside}{SEED}"):
        with pytest.raises(PermissionDeniedError):
            obstore.get(machine, path)
    for prefix in (None, inside or None, f"{inside}tpi-other"):
        with pytest.raises(BaseError, match="403"):
            obstore.list(machine, prefix).collect()
    assert obstore.get(machine, f"{inside}{layout.ENVIRONMENT}").bytes()
    obstore.list(machine, f"{inside}{layout.LOGS}").collect()
    obstore.put(machine, f"{inside}{layout.LOGS}/x", b"line")
    handle.delete()


def _machine(sim: SimAzure, id: str) -> AzureStore:
    """The container as machines of a task see it."""
    parts = sim._parts
    found = parts.resources.find(
        f"/subscriptions/{sim.subscription}/resourceGroups/{id}"
        f"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{id}"
    )
    assert found
    token = parts.directory.issue(found.inner.principal, _AUDIENCE, 3600)
    return AzureStore("shared", account_name="anaccount", bearer_token=token)
