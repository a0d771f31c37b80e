from __future__ import annotations

from pathlib import Path

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from sojourn.clouds.aws import machine_types
from sojourn.clouds.aws.machine_types import instance_type
from sojourn.clouds.aws.machines import ImageName, parse_image
from sojourn.clouds.aws.regions import region
from sojourn.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("common", "own"),
    [("us-west", "us-west-1"), ("eu-north", "eu-north-1"), ("ap-southeast-2", "ap-southeast-2")],
)
def test_regions(common: str, own: str) -> None:
    assert region(common) == own


@pytest.mark.parametrize(
    ("common", "own"),
    [("m", "m5.2xlarge"), ("m+v100", "p3.2xlarge"), ("g4dn.xlarge", "g4dn.xlarge")],
)
def test_machine_types(common: str, own: str) -> None:
    assert instance_type(common) == own


def test_a_size_that_aws_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidInput, match=r"AWS has no m\+a100; use xl\+a100"):
        instance_type("m+a100")


def test_every_size_is_a_type_of_ec2_with_as_many_gpus() -> None:
    """As far as the data of moto goes back: newer ones are not in it."""
    for common, own in machine_types._TYPES.items():
        if own in INSTANCE_TYPES:
            found = INSTANCE_TYPES[own].get("GpuInfo", {"Gpus": []})["Gpus"]
            models = {gpu["Name"].lower() for gpu in found}
            assert models <= {common.partition("+")[2]}, common
            assert bool(models) == ("+" in common), common


def test_the_page_has_every_size() -> None:
    page = (Path(__file__).parents[4] / "docs" / "aws.md").read_text()
    for common, own in machine_types._TYPES.items():
        assert f"`{common}`" in page
        assert f"`{own}`" in page


def test_images_are_named_as_the_old_provider_did() -> None:
    assert parse_image("ubuntu@099720109477:x86_64:*ubuntu/images/hvm-ssd/ubuntu-focal-20.04*") == (
        ImageName("ubuntu", "099720109477", "x86_64", "*ubuntu/images/hvm-ssd/ubuntu-focal-20.04*")
    )
    assert parse_image("ubuntu").owner == "099720109477"


@pytest.mark.parametrize(
    ("check", "text", "field"),
    [
        (region, "westus2", "region"),
        (instance_type, "Standard_F8s", "machine"),
        (parse_image, "canonical:ubuntu:server:latest", "image"),
    ],
)
def test_what_is_of_another_cloud_is_refused(check: object, text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(text)  # type: ignore[operator]
    assert caught.value.path == field
