"""Tasks in one bucket of the user's: none reads what another has, wherever their folders are."""

from __future__ import annotations

import obstore
import pytest
from obstore.exceptions import BaseError, PermissionDeniedError

import sojourn
from sojourn.clouds.vm.paths import SEED
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.task import Storage, Task
from sojourn.storage import layout
from sojourn.storage.objects import ObstoreStore
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User, store

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@pytest.fixture
def bucket(project: SimGCP, user: User) -> str:
    user.make_bucket("shared")
    return "shared"


def _created(container: str) -> sojourn.Handle:
    return sojourn.create(Task("#!/bin/sh\n", cloud="gcp", storage=Storage(container=container)))


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
    project: SimGCP, first: str, second: str
) -> None:
    one = _created(first)
    before = project.inventory()
    with pytest.raises(Conflict, match=f"overlaps with that of the task {one.id}"):
        _created(second)
    assert project.inventory() == before
    one.delete()
    assert project.inventory() == ["bucket shared"]


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("container", ["shared/", "shared/x"])
def test_a_machine_cannot_read_what_another_task_has_below_its_folder(
    project: SimGCP, user: User, container: str
) -> None:
    """As tasks of other projects may, of which nobody here knows."""
    handle = _created(container)
    inside = container.partition("/")[2] + ("/" if container.endswith("x") else "")
    others = [f"{inside}tpi-other/{layout.ENVIRONMENT}", f"{inside}a/b/{SEED}"]
    for path in others:
        user.store("shared").put(path, b"secret")
    accounts = project.project.accounts
    [account] = [each for name, each in accounts.all.items() if name.startswith("tpi-")]
    machine = store(project.endpoint, "shared", accounts.make_token(account, (_SCOPE,))[0])
    for path in (*others, f"{inside}{SEED}"):
        with pytest.raises(PermissionDeniedError):
            obstore.get(machine, path)
    for prefix in (None, inside or None, f"{inside}tpi-other"):
        with pytest.raises(BaseError, match="403"):
            obstore.list(machine, prefix).collect()
    assert obstore.get(machine, f"{inside}{layout.ENVIRONMENT}").bytes()
    obstore.list(machine, f"{inside}{layout.LOGS}").collect()
    obstore.put(machine, f"{inside}{layout.LOGS}/x", b"line")
    with pytest.raises(NotFound):  # Google denies access to what is absent, too
        ObstoreStore(machine).get(f"{inside}{layout.report_path(0, 1)}")
    obstore.delete(user.store("shared"), others)
    handle.delete()
    assert project.inventory() == ["bucket shared"]
