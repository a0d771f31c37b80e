"""What tests leave in a subscription is removed by its mark, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.clouds.az_real_kit import RealAzureKit
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User
from tests.unit.clouds.vm import sweeps

pytestmark = pytest.mark.slow  # groups take a while to go

CODE = """
from sojourn import Task
from sojourn.clouds.az import machine_types, tags

print(tags.tags_of("id", Task("#!/bin/sh"))["sojourn:test"], machine_types.size("m"))
"""


@pytest.fixture
def kit(laptop: SimAzure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealAzureKit:
    """The kit for a real subscription, on one that is not."""
    made = RealAzureKit(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def test_all_that_a_task_leaves_is_found(laptop: SimAzure, kit: RealAzureKit) -> None:
    sweeps.all_that_a_task_leaves_is_found(laptop, kit, {"resource group"})


def test_the_sweep_removes_all_of_it(laptop: SimAzure, kit: RealAzureKit) -> None:
    sweeps.all_of_it_is_removed(laptop, kit)


def test_images_are_removed(laptop: SimAzure, kit: RealAzureKit) -> None:
    sweeps.an_image_is_removed(laptop, kit, "resource group sojourn-image-tools-")


def test_what_has_no_mark_or_another_stays(
    laptop: SimAzure, kit: RealAzureKit, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = user.make_group("tpi-group", **{"sojourn:testing": kit.mark})
    user.make_container(group, "tpiaccount")
    user.make_group("tpi-empty-mark", **{"sojourn:test": ""})
    identity = user.make_identity(user.make_group("tpi-sojourn-test"))
    # What has the mark, but is in a group of somebody else's: tests put nothing there.
    user.put(identity["id"], {"location": "eastus", "tags": {"sojourn:test": kit.mark}})
    sweeps.what_has_no_mark_or_another_stays(laptop, kit, monkeypatch)


def test_without_yes_nothing_is_removed(
    kit: RealAzureKit, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeps.nothing_is_removed_without_yes(kit, capsys)


def test_processes_that_tests_start_mark_what_they_make_as_well(kit: RealAzureKit) -> None:
    sweeps.processes_mark_as_well(kit, CODE, "Standard_B1s")


def test_a_lost_agent_is_a_machine_that_was_deleted(laptop: SimAzure, kit: RealAzureKit) -> None:
    sweeps.a_lost_machine_is_gone(laptop, kit)
