"""Which image and which machines a task gets, and what is said where there are none."""

from __future__ import annotations

from typing import Any

import pytest

from sojourn.clouds.gcp import machine_types
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.machines import Offer, Offers
from sojourn.clouds.gcp.regions import zone
from sojourn.core.errors import InvalidInput
from sojourn.core.task import Task
from tests.simcloud.gcp import catalogue
from tests.simcloud.gcp.account import SimGCP

_JAMMY = "me@ubuntu-os-cloud/ubuntu-2204-lts"
# No zone has all of them.
_ZONES = {"a100": "us-central1-a", "h100": "us-central1-a"}


def _found(**more: Any) -> Offer:
    return Offers(Account()).find(Task("#!/bin/sh\n", cloud="gcp", **more))


def _refused(**more: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        _found(**more)
    return caught.value


def test_ubuntu_is_the_newest_of_its_family(untouched: SimGCP) -> None:
    image = _found().image
    assert image.path.endswith("/ubuntu-os-cloud/global/images/ubuntu-2404-lts-amd64-v20261024")
    assert image.user == "ubuntu"


def test_nvidia_is_one_with_drivers(untouched: SimGCP) -> None:
    image = _found(image="nvidia", machine="m+l4").image
    assert "/deeplearning-platform-release/global/images/common-cu128-" in image.path


def test_a_family_or_one_image_by_its_name(untouched: SimGCP) -> None:
    family = _found(image=_JAMMY).image
    assert family.path.endswith("ubuntu-2204-lts-v20261024")
    assert family.user == "me"
    older = _found(image=f"{_JAMMY}-v20260912").image
    assert older.path.endswith("ubuntu-2204-lts-v20260912")
    assert len(older.pythons) > 1


def test_arm_machines_get_arm_images(untouched: SimGCP) -> None:
    image = _found(machine="t2a-standard-4").image
    assert (image.architecture, "arm64" in image.path) == ("ARM64", True)


@pytest.mark.parametrize("size", list(machine_types._TYPES))
def test_every_size_can_be_had(untouched: SimGCP, size: str) -> None:
    offer = _found(machine=size, region=_ZONES.get(size.partition("+")[2], "us-west"))
    kind = offer.type
    shape = catalogue.shape(kind.name, offer.zone)
    assert shape
    assert kind.has_gpus == ("+" in size)
    if "+" in size:
        number = kind.count or shape.count
        expected = {"m": (1,), "l": (4,), "xl": (8,)}[size.partition("+")[0]]
        assert number in expected


@pytest.mark.parametrize(
    "machine", ["m+k80", "l+k80", "xl+k80", "n1-standard-4+nvidia-tesla-k80*1"]
)
def test_machines_with_k80s_are_refused_with_what_to_use_instead(
    untouched: SimGCP, machine: str
) -> None:
    error = _refused(machine=machine)
    assert error.path == "machine"
    own = "n1-standard-4+nvidia-tesla-t4*1, " if machine.startswith("n1") else ""
    assert f"Google Cloud withdrew K80s: use {own}m+t4, l+t4 or m+l4 instead" in error.message
    assert untouched.calls == []


def test_a_size_that_there_is_not_is_refused_with_those_there_are(untouched: SimGCP) -> None:
    assert "Google Cloud has no xl+t4; use m+t4 or l+t4" in _refused(machine="xl+t4").message


def test_gpus_that_a_zone_does_not_have_are_told_with_where_to_look(untouched: SimGCP) -> None:
    error = _refused(machine="m+v100", region="us-east1-b")
    assert "nvidia-tesla-v100 is not available in us-east1-b" in error.message
    assert "accelerator-types list --filter name=nvidia-tesla-v100" in error.message


def test_a_type_that_a_zone_does_not_have_is_told_with_where_to_look(untouched: SimGCP) -> None:
    error = _refused(machine="a2-highgpu-1g", region="us-west1-a")
    assert "gcloud compute machine-types list --zones us-west1-a" in error.message


@pytest.mark.parametrize("name", ["us-west", "us-east", "eu-north", "eu-west"])
def test_short_names_are_of_zones_that_exist(name: str) -> None:
    assert zone(name) in catalogue.ZONES


def test_it_is_asked_once(untouched: SimGCP) -> None:
    offers = Offers(Account())
    task = Task("#!/bin/sh\n", cloud="gcp", machine="m+t4")
    offers.find(task)
    before = len(untouched.calls)
    assert offers.find(task) is offers.find(task)
    assert len(untouched.calls) == before


@pytest.mark.parametrize(
    ("machine", "name"), [("m", "ubuntu-2404-lts"), ("m+l4", "common-cu128"), ("m+t4", "common-")]
)
def test_a_container_has_a_machine_image_below_it(
    untouched: SimGCP, machine: str, name: str
) -> None:
    assert name in _found(image="docker://python:3.12", machine=machine).image.path


def test_the_machine_image_below_a_container_is_named_if_it_is_wrong(untouched: SimGCP) -> None:
    error = _refused(image="docker://python:3.12", options={"vm_image": "nothing/here"})
    assert (
        error.message == "options.vm_image: 'nothing/here' not found: project nothing has no here"
    )
    found = _found(image="docker://python:3.12", options={"vm_image": _JAMMY})
    assert found.image.user == "me"
