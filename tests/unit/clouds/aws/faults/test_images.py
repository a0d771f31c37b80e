"""Making images: faults at calls, kills, and what the documented permissions allow."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import AuthError, Cancelled
from sojourn.engine import imaging
from tests.simcloud.aws.account import SimAWS
from tests.unit.clouds.aws.faults.laptop import Laptop
from tests.unit.clouds.vm import crashing, repeating
from tests.unit.clouds.vm.laptop import IMAGE

PAGE = Path(__file__).parents[5] / "docs" / "aws.md"


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
    laptop.sim.timing.image_ready = 600
    ctx = Context()
    laptop.sim.watch(lambda call: ctx.cancel() if call.name == "ec2:CreateImage" else None)
    with pytest.raises(Cancelled):
        laptop.make_image(ctx)
    laptop.sim.watch(lambda _: None)
    assert laptop.sim.inventory() == []


def test_an_image_that_nobody_finishes_is_garbage(laptop: Laptop) -> None:
    laptop.make_image()
    laptop.sim.fail("ec2:DeleteSnapshot", code="AccessDenied", status=403)
    with pytest.raises(AuthError):
        laptop.delete_image()
    assert laptop.images() == [(IMAGE, False)]
    [found] = imaging.garbage(laptop.ctx, laptop.cloud)
    assert found.name == IMAGE
    laptop.delete_image()
    assert laptop.sim.inventory() == []


def test_an_image_is_found_from_another_region(
    laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop.make_image()
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    [found] = imaging.list_images(laptop.ctx, Laptop(laptop.sim).cloud)
    assert (found.name, found.region, found.ready) == (IMAGE, "us-west-1", True)
    laptop.delete_image()


def test_the_documented_permissions_are_enough(
    sim: SimAWS, laptop: Laptop, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = PAGE.read_text().split("## Permissions", 1)[1]
    policies = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    both = [statement for policy in policies for statement in policy["Statement"]]
    allowed = {"Version": "2012-10-17", "Statement": both}
    for name, value in sim.user(allowed, "limited").items():
        monkeypatch.setenv(name, value)
    limited = Laptop(sim)
    limited.make_image()
    limited.delete_image()
    assert sim.inventory() == []
    assert {call.error for call in sim.calls if "Snapshot" in call.name} == {""}
