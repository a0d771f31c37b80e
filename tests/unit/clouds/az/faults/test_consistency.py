"""Azure is many services that do not know of each other at once, and others use it too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from sojourn.clouds.az import scaler, template
from sojourn.core.errors import (
    AuthError,
    CapacityError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    Transient,
)
from sojourn.core.status import INCOMPLETE, State
from sojourn.core.task import Storage
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az.offers import Refusal
from tests.simcloud.az_user import User
from tests.support.waiting import patience, until
from tests.unit.clouds.az.faults.laptop import ID, Laptop


@pytest.fixture
def user(sim: SimAzure) -> Iterator[User]:
    user = User(sim.environment())
    yield user
    user.close()


def test_what_takes_its_time_is_waited_for(laptop: Laptop) -> None:
    timing = laptop.sim.timing
    timing.storage = timing.network = timing.scale_set = timing.group_gone = 0.3
    timing.principal_ready = timing.account_ready = 0.5
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []
    assert laptop.sim.impatient == []


def test_as_long_as_azure_says_it_is_left_alone(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # sleeps are what is looked at
    for name, value in laptop.sim.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sojourn.clouds.vm.agent_files.bundle", lambda *_: b"the agent")
    laptop.sim.timing.retry_after = 1
    laptop.create()
    laptop.delete()
    assert laptop.sim.impatient == []


def test_a_group_that_is_being_deleted_is_waited_for(laptop: Laptop) -> None:
    laptop.create()
    laptop.sim.timing.group_gone = 0.5
    path = f"{laptop.account.scope}/resourceGroups/{ID}"
    laptop.account.call("group", "DELETE", path)
    laptop.create()
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_group_of_somebody_else_is_left_alone(laptop: Laptop, user: User) -> None:
    user.put(f"resourceGroups/{ID}", {"location": "eastus", "tags": {"mine": "yes"}})
    before = laptop.sim.inventory()
    with pytest.raises(Conflict, match=r"already exists and is not Sojourn's"):
        laptop.create()
    assert laptop.sim.inventory() == before
    with suppress(NotFound):
        laptop.delete()
    assert laptop.sim.inventory() == before


def test_a_task_of_this_name_elsewhere_is_another_one(laptop: Laptop) -> None:
    laptop.create()
    with pytest.raises(Conflict, match="A different task with this name already exists in westus2"):
        laptop.create(region="eu-west")
    assert laptop.has_all()
    laptop.delete()
    assert laptop.sim.inventory() == []


def test_a_storage_account_of_somebody_else_has_the_name(laptop: Laptop) -> None:
    name = laptop.cloud._locations.of(ID, laptop.task()).account
    laptop.sim.foreign_account(name)
    with pytest.raises(Conflict, match="already taken"):
        laptop.create()
    assert laptop.sim.inventory() == []


def test_a_provider_that_is_not_registered(laptop: Laptop) -> None:
    laptop.sim.unregister("Microsoft.Compute")
    with pytest.raises(AuthError, match=r"az provider register --namespace Microsoft\.Compute"):
        laptop.create()
    assert laptop.sim.inventory() == []


def test_a_lock_is_named_and_nothing_is_forgotten(laptop: Laptop) -> None:
    laptop.create()
    scope = f"{laptop.account.scope}/resourceGroups/{ID}"
    laptop.sim.lock(scope)
    with pytest.raises(Conflict, match="Remove the lock of"):
        laptop.delete()
    laptop.sim.lock(scope, on=False)
    laptop.delete()
    assert laptop.sim.inventory() == []


@pytest.mark.parametrize(
    ("why", "kind"), [(Refusal.SIZE, CapacityError), (Refusal.QUOTA, QuotaError)]
)
def test_what_azure_refuses_at_once_is_told_at_once(
    laptop: Laptop, why: Refusal, kind: type[Exception]
) -> None:
    laptop.sim.refuse(why)
    with pytest.raises(kind):
        laptop.create()
    assert laptop.sim.inventory() == []


def test_a_spot_price_that_is_too_low(laptop: Laptop) -> None:
    laptop.sim.spot_price("Standard_F8s_v2", 0.3)
    with pytest.raises(CapacityError, match=r"spot price is 0\.3 .* above the maximum of 0\.1"):
        laptop.create(spot=0.1)
    assert laptop.sim.inventory() == []
    laptop.create(spot=0.4)
    laptop.delete()


def test_a_disk_is_as_large_as_images_for_linux_are(laptop: Laptop) -> None:
    laptop.create(disk_size=10)
    laptop.delete()


def test_a_disk_that_is_too_small_is_told_by_its_field(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an image that needs more than most."""
    monkeypatch.setattr(template, "SMALLEST_DISK", 10)
    with pytest.raises(InvalidInput, match="disk_size: The specified disk size 10 GB is smaller"):
        laptop.create(disk_size=10)
    assert laptop.sim.inventory() == []


def test_a_machine_that_could_not_be_made_makes_room(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaler, "_RETRY_AFTER", timedelta(hours=1))
    laptop.sim.capacity(None, None, False)
    laptop.create()
    until(lambda: "no capacity" in laptop.status().reason)
    assert laptop.status().state is State.QUEUED
    laptop.sim.capacity(None, None, True)
    assert laptop.machines() == ()
    monkeypatch.setattr(scaler, "_RETRY_AFTER", timedelta(0))
    until(lambda: laptop.machines() != ())
    events = laptop.cloud.scaler(ID).events(laptop.ctx)
    assert any("Azure has no capacity for this size" in event.description for event in events)
    laptop.delete()


def test_a_folder_in_a_container_that_others_use_is_left_alone(laptop: Laptop, user: User) -> None:
    user.make_container(user.make_group())
    before = laptop.sim.inventory()
    storage = Storage(container="box/shared", container_opts={"account": "anaccount"})
    laptop.create(storage=storage)
    made = laptop.sim.inventory()
    assert any("blob anaccount/box/shared/task.json" in line for line in made)
    assert sum("role assignment" in line for line in made) == 5
    assert laptop.machines()
    laptop.delete()
    assert laptop.sim.inventory() == before


def test_a_key_opens_the_container_of_who_creates(laptop: Laptop, user: User) -> None:
    """Nobody who only has the key's use may read blobs by a login; and it is kept nowhere."""
    container = user.make_container(user.make_group())
    account = container.partition("/blobServices/")[0]
    key = user.call("POST", f"{account}/listKeys").json()["keys"][0]["value"]
    storage = Storage(container="box", container_opts={"account": "anaccount", "key": key})
    laptop.sim.fail("blobs.*", code="AuthorizationPermissionMismatch", status=403, who="admin*")
    laptop.create(storage=storage)
    laptop.sim.heal()
    said = str([user.get(f"resourceGroups/{ID}"), user.get(f"resourceGroups/{ID}/resources")])
    assert key not in said
    laptop.delete()


def test_an_outage_of_the_store_is_waited_for(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sojourn.clouds.az.watched._PAUSE", 0.01)
    laptop.create()
    laptop.sim.fail("blobs.GetBlob", status=503, code="ServerBusy", times=12)
    assert laptop.status().state is State.PROVISIONING
    monkeypatch.setattr("sojourn.clouds.az.watched._PATIENCE", 0.0)
    laptop.sim.fail("blobs.GetBlob", status=503, code="ServerBusy", times=100)
    with pytest.raises(Transient):
        laptop.status()
    laptop.sim.heal()
    laptop.delete()


def test_a_creation_that_was_killed_before_there_was_a_store_can_be_deleted(
    laptop: Laptop, user: User
) -> None:
    user.put(f"resourceGroups/{ID}", {"location": "westus2", "tags": {"sojourn:id": str(ID)}})
    began = time.monotonic()
    assert laptop.status() == INCOMPLETE
    laptop.delete()
    assert time.monotonic() - began < patience(30)  # nobody waits for what does not come
    assert laptop.sim.inventory() == []
