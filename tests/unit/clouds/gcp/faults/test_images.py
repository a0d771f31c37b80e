"""Making images: faults at calls, kills, and what the documented permissions allow."""

from __future__ import annotations

import json
import re

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled
from tests.unit.clouds.gcp.faults.laptop import Laptop
from tests.unit.clouds.gcp.faults.limited import PAGE, Limited
from tests.unit.clouds.vm import crashing, repeating
from tests.unit.clouds.vm.laptop import IMAGE


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
    laptop.sim.timing.image_ready = 0.3
    laptop.make_image()
    assert laptop.images() == [(IMAGE, True)]
    laptop.delete_image()
    assert laptop.sim.inventory() == []


def test_whoever_stops_waiting_leaves_nothing(laptop: Laptop) -> None:
    laptop.sim.timing.image_ready = 0.5
    ctx = Context()
    laptop.sim.watch(lambda call: ctx.cancel() if call.name == "compute:images.insert" else None)
    with pytest.raises(Cancelled):
        laptop.make_image(ctx)
    laptop.sim.watch(lambda _: None)
    assert laptop.sim.inventory() == []


def test_the_documented_permissions_are_enough_and_all_are_used(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = PAGE.read_text().split("## Permissions", 1)[1]
    blocks = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    tasks, more = (set(json.loads(text)["includedPermissions"]) for text in blocks)
    limited = Limited(laptop.sim, laptop, monkeypatch)
    limited.allow(tasks | more)
    limited.laptop.make_image()
    limited.laptop.create(image=f"sojourn:{IMAGE}")
    limited.laptop.delete()
    limited.laptop.delete_image()
    assert laptop.sim.inventory() == []
    assert more <= limited.used[""]
