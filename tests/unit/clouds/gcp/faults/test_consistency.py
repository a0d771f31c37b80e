"""Google Cloud is many services that do not know of each other at once, and others use it too."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from sojourn import api
from sojourn.clouds.gcp import account, store
from sojourn.clouds.gcp.locations import Locations
from sojourn.clouds.vm import store as vm_store
from sojourn.core.errors import (
    AuthError,
    Cancelled,
    Conflict,
    InvalidInput,
    NotFound,
    SojournError,
)
from sojourn.core.status import INCOMPLETE
from sojourn.core.task import Storage
from tests.simcloud.gcp_user import ZONE, User
from tests.unit.clouds.gcp.faults.laptop import ID, Laptop

NAME = str(ID)
_SOON = 0.3


def _slow(*operations: str) -> list[ParameterSet]:
    """The same with others; all of them take a while."""
    return [pytest.param(each, marks=pytest.mark.slow) for each in operations]


def test_an_account_that_templates_do_not_know_yet_is_waited_for(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.sim.timing.account_ready = _SOON
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_template_that_is_refused_for_its_account_is_made_again(laptop: Laptop) -> None:
    real = account.Account.compute
    left = [2]

    def compute(self: Any, what: str, method: str, path: str, *more: Any, **named: Any) -> Any:
        if (method, path) == ("POST", "global/instanceTemplates") and left[0]:
            left[0] -= 1
            raise InvalidInput("template", "Invalid value for field 'serviceAccounts[0].email'")
        return real(self, what, method, path, *more, **named)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(account.Account, "compute", compute)
        laptop.create()
    assert left == [0]
    assert laptop.has_all()
    laptop.delete()


def test_a_bucket_that_is_not_known_yet_is_waited_for(laptop: Laptop) -> None:
    laptop.sim.timing.bucket_ready = _SOON
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_that_is_not_known_yet_is_removed_when_the_creation_is_cancelled(
    laptop: Laptop,
) -> None:
    laptop.sim.timing.bucket_ready = 0.8
    ctx = laptop.ctx
    timer = threading.Timer(0.2, ctx.cancel)
    laptop.sim.watch(lambda call: timer.start() if call.name == "storage:buckets.insert" else None)
    with pytest.raises(Cancelled, match="nothing was left"):
        laptop.create(ctx=ctx)
    timer.join()
    assert laptop.sim.inventory() == []


def test_two_creations_at_a_time_make_one_task(laptop: Laptop) -> None:
    failed: list[BaseException] = []

    def create() -> None:
        try:
            laptop.create()
        except BaseException as error:
            failed.append(error)

    for _ in range(3):
        threads = [threading.Thread(target=create) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert laptop.has_all()
        laptop.delete()
        assert laptop.sim.inventory() == []


def test_a_bucket_that_another_command_makes_between_two_looks_is_ours(
    laptop: Laptop, user: User
) -> None:
    def make(call: Any) -> None:
        if call.name == "storage:buckets.get" and not made:
            made.append(call)
            query = {"project": laptop.account.project}
            user.call("POST", "storage", "storage/v1/b", {"name": NAME, "location": "US"}, **query)

    made: list[Any] = []
    laptop.sim.watch(make)
    Locations(laptop.account).ensure_ours(NAME)
    assert made
    laptop.sim.watch(lambda _: None)
    user.call("DELETE", "storage", f"storage/v1/b/{NAME}")


def test_a_group_that_is_being_deleted_is_waited_for(laptop: Laptop, user: User) -> None:
    laptop.create()
    laptop.sim.timing.operation = _SOON
    path = f"compute/v1/projects/{laptop.account.project}/zones/{ZONE}/instanceGroupManagers/{NAME}"
    user.call("DELETE", "compute", path)
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_is_emptied_of_all_versions(laptop: Laptop, user: User) -> None:
    laptop.create()
    body = {"versioning": {"enabled": True}}
    user.call("PATCH", "storage", f"storage/v1/b/{NAME}", body)
    bucket = user.store(NAME)
    for text in (b"one", b"two"):
        bucket.put("folder/twice", text)
    bucket.delete("folder/twice")
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_with_many_objects_is_emptied_page_by_page(
    laptop: Laptop, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.create()
    monkeypatch.setattr(vm_store, "PATIENCE", 0.0)  # which is not for emptying
    bucket = user.store(NAME)
    for number in range(30):
        bucket.put(f"many/{number}", b"")
    real = store._pages
    monkeypatch.setattr(
        store, "_pages", lambda *given, **named: real(*given, **named, maxResults=10)
    )
    names = laptop.calls_of(laptop.delete)
    assert names.count("storage:objects.list") > 3
    assert laptop.sim.inventory() == []


def test_an_object_that_may_not_be_removed_is_told(laptop: Laptop) -> None:
    laptop.create()
    laptop.sim.fail("storage:objects.delete", code="forbidden", status=403, times=99)
    with pytest.raises(AuthError):
        laptop.delete()
    laptop.sim.heal()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_bucket_that_somebody_else_makes_meanwhile_is_a_conflict(laptop: Laptop) -> None:
    laptop.sim.fail("storage:buckets.insert", code="conflict", status=409)
    with pytest.raises(Conflict) as caught:
        laptop.create()
    assert "choose another name" in caught.value.hint
    assert laptop.sim.inventory() == []


def test_somebody_elses_bucket_is_a_conflict_and_nothing_is_made(laptop: Laptop) -> None:
    laptop.sim.foreign_bucket(NAME)
    with pytest.raises(Conflict, match=f"Bucket {NAME} belongs to another project") as caught:
        laptop.create()
    assert "Choose another name" in caught.value.hint
    assert laptop.sim.inventory() == []


@pytest.mark.parametrize(
    "operation",
    [
        "cloudresourcemanager:projects.setIamPolicy",
        "compute:firewalls.insert",
        *_slow("storage:objects.insert", "iam:projects.serviceAccounts.create"),
        *_slow("storage:buckets.setIamPolicy", "compute:instanceTemplates.insert"),
        *_slow("compute:instanceGroupManagers.insert"),
    ],
)
def test_a_half_made_task_in_the_users_bucket_is_found_and_deleted(
    laptop: Laptop, user: User, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.make_bucket("users-own")
    before = laptop.sim.inventory()
    laptop.sim.fail(operation, code="forbidden", status=403)
    with monkeypatch.context() as patched:
        patched.setattr("sojourn.engine.creation._remove", lambda *_: [])  # as if it was killed
        with pytest.raises(SojournError):
            laptop.create(storage=Storage(container="users-own"))
    # Of the rule, which tells where it is, it has nothing to find if that was not made.
    assert laptop.exists() == (operation != "compute:firewalls.insert")
    laptop.delete()
    assert laptop.sim.inventory() == before


@pytest.mark.parametrize(
    "operation",
    [
        "cloudresourcemanager:projects.setIamPolicy",
        "compute:firewalls.delete",
        *_slow("storage:objects.delete", "iam:projects.serviceAccounts.delete"),
        *_slow("storage:buckets.setIamPolicy", "compute:instanceTemplates.delete"),
        *_slow("compute:instanceGroupManagers.delete"),
    ],
)
def test_a_half_deleted_task_in_the_users_bucket_is_found_and_deleted(
    laptop: Laptop, user: User, operation: str
) -> None:
    user.make_bucket("users-own")
    before = laptop.sim.inventory()
    laptop.create(storage=Storage(container="users-own"))
    laptop.sim.fail(operation, code="forbidden", status=403)
    with pytest.raises(SojournError):
        laptop.delete()
    laptop.delete()
    assert laptop.sim.inventory() == before


@pytest.mark.slow
def test_any_resource_may_be_gone_when_a_task_is_deleted(laptop: Laptop) -> None:
    count = 0
    while True:
        laptop.create()
        made = laptop.cloud.resources(ID, None)
        if count == len(made):
            break
        made[-1].delete(laptop.ctx)  # machines need all the others
        made[-2].delete(laptop.ctx)
        made[count].delete(laptop.ctx)
        laptop.delete()
        assert laptop.sim.inventory() == [], made[count].title
        count += 1
    laptop.delete()


@pytest.mark.parametrize("verb", ["create", "status", "stop", "delete"])
def test_an_expired_login_is_told_with_what_to_do(laptop: Laptop, verb: str) -> None:
    laptop.sim.fail("*", code="authError", status=401, times=999)
    with pytest.raises(AuthError) as caught:
        getattr(laptop, verb)()
    assert "gcloud auth application-default login" in caught.value.hint


def test_a_creation_that_was_broken_off_is_told_by_all_verbs(laptop: Laptop) -> None:
    laptop.sim.fail("compute:instanceTemplates.insert", code="forbidden", status=403)
    laptop.sim.fail("storage:objects.list", code="forbidden", status=403)
    with pytest.raises(SojournError, match="Another command may be creating the same task"):
        laptop.create()
    laptop.sim.heal()
    handle = api.get(NAME)
    assert handle.status() == INCOMPLETE
    assert handle.machines() == handle.events() == []
    with pytest.raises(NotFound, match=r"Could not start .*: creation did not finish"):
        handle.start()
    handle.stop()
    handle.delete(fetch=False)
    assert laptop.sim.inventory() == []


def test_a_refused_creation_changes_nothing_of_the_task_that_is_there(
    laptop: Laptop, user: User
) -> None:
    laptop.create(tags={"team": "ml"})
    with pytest.raises(Conflict, match="a different task with this name already exists"):
        laptop.create(tags={"team": "other"})
    assert user.call("GET", "storage", f"storage/v1/b/{NAME}")["labels"]["team"] == "ml"
    laptop.delete()
    assert laptop.sim.inventory() == []
