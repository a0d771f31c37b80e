"""Making images: faults at calls, kills, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Cancelled, Conflict, InvalidInput
from sojourn.engine import imaging
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User
from tests.unit.clouds.az.faults.laptop import Laptop
from tests.unit.clouds.vm import crashing, repeating
from tests.unit.clouds.vm.laptop import IMAGE

GROUP = "sojourn-image-tools-westus2"


@pytest.fixture
def user(sim: SimAzure) -> Iterator[User]:
    user = User(sim.environment())
    yield user
    user.close()


@pytest.mark.slow
@repeating.kinds
def test_an_image_is_made_or_nothing_is_left(laptop: Laptop, kind: str) -> None:
    repeating.an_image_is_made_or_nothing_is_left(laptop, kind)


@pytest.mark.slow
@repeating.kinds
def test_deletion_of_an_image_is_repeated(laptop: Laptop, kind: str) -> None:
    repeating.deletion_of_an_image_is_repeated(laptop, kind)


@pytest.mark.full
def test_an_image_whose_maker_is_killed(laptop: Laptop) -> None:
    crashing.an_image_whose_maker_is_killed(laptop)


def test_an_image_is_waited_for_until_it_can_be_used(laptop: Laptop) -> None:
    laptop.sim.timing.image = laptop.sim.timing.listed = 0.3
    laptop.make_image()
    assert laptop.images() == [(IMAGE, True)]
    [image] = [line for line in laptop.sim.inventory() if line.startswith("images ")]
    assert image == f"images /resourceGroups/{GROUP}/providers/Microsoft.Compute/images/{IMAGE}"
    laptop.delete_image()
    assert laptop.sim.inventory() == []


def test_whoever_stops_waiting_leaves_nothing(laptop: Laptop) -> None:
    laptop.sim.timing.image = 0.5
    ctx = Context()
    wanted = "snapshots.createOrUpdate"
    laptop.sim.watch(lambda call: ctx.cancel() if call.name == wanted else None)
    with pytest.raises(Cancelled):
        laptop.make_image(ctx)
    laptop.sim.watch(lambda _: None)
    assert laptop.sim.inventory() == []


def test_an_image_is_not_ready_before_all_of_it_is_done(laptop: Laptop) -> None:
    """Its disk was copied, and the copy is still there."""
    denied: dict[str, Any] = {"code": "AuthorizationFailed", "status": 403}
    laptop.sim.fail("snapshots.delete", **denied)
    laptop.sim.fail("resourceGroups.delete", times=9, nth=2, **denied)
    with pytest.raises(AuthError, match=r"image tools: .*AuthorizationFailed") as caught:
        laptop.make_image()
    assert "sojourn image delete tools --cloud az" in caught.value.hint
    laptop.sim.heal()
    assert laptop.images() == [(IMAGE, False)]
    with pytest.raises(InvalidInput, match=r"sojourn:tools not found in westus2; run `sojourn im"):
        laptop.create(image=f"sojourn:{IMAGE}")
    [found] = imaging.garbage(laptop.ctx, laptop.cloud)
    assert found.name == IMAGE
    laptop.make_image()
    assert laptop.images() == [(IMAGE, True)]
    laptop.delete_image()
    assert laptop.sim.inventory() == []


def test_an_image_has_the_generation_of_its_machine(laptop: Laptop, user: User) -> None:
    laptop.make_image()
    path = f"resourceGroups/{GROUP}/providers/Microsoft.Compute/images/{IMAGE}"
    made = user.get(path)["properties"]
    assert made["hyperVGeneration"] == "V2"
    disk = made["storageProfile"]["osDisk"]
    assert (disk["osType"], disk["osState"], disk["diskSizeGB"]) == ("Linux", "Generalized", 30)
    laptop.delete_image()


def test_a_group_of_somebody_else_is_left_alone(laptop: Laptop, user: User) -> None:
    """Also one that looks like the group of an image."""
    path = f"resourceGroups/{GROUP}"
    user.put(path, {"location": "westus2", "tags": {"sojourn:image": "other"}})
    before = laptop.sim.inventory()
    assert laptop.images() == []
    with pytest.raises(Conflict, match=f"{GROUP} already exists and is not Sojourn's"):
        laptop.make_image()
    assert laptop.sim.inventory() == before


def test_a_lock_is_told_and_the_image_stays(laptop: Laptop) -> None:
    laptop.make_image()
    scope = f"{laptop.account.scope}/resourceGroups/{GROUP}"
    laptop.sim.lock(scope)
    with pytest.raises(Conflict, match="Remove the lock of"):
        laptop.delete_image()
    laptop.sim.lock(scope, on=False)
    laptop.delete_image()
    assert laptop.sim.inventory() == []


def test_machines_for_which_azure_has_no_images(laptop: Laptop) -> None:
    task = laptop.task(machine="Standard_D2ps_v5")
    with pytest.raises(InvalidInput, match=r"machine: images cannot be made on Standard_D2ps_v5"):
        laptop.cloud.images().check(laptop.ctx, task)
