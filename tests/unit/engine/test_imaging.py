"""Images are refused, before anything is made, where they cannot be."""

from __future__ import annotations

import pytest

from sojourn import clouds, images
from sojourn.core.errors import InvalidInput

SCRIPT = "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("cloud", "instead"), [("local", "Nothing is needed"), ("k8s", "container image")]
)
def test_a_cloud_without_images_says_what_to_use(cloud: str, instead: str) -> None:
    with pytest.raises(InvalidInput, match=f"{cloud} does not support making images") as caught:
        images.make("tools", SCRIPT, cloud=cloud)
    assert instead in caught.value.hint
    with pytest.raises(InvalidInput, match="does not support"):
        images.delete("tools", cloud=cloud)


def test_every_cloud_without_images_has_something_else() -> None:
    for name in clouds.KINDS:
        cloud = clouds.load(name)
        assert (cloud.images() is None) == bool(cloud.features.instead_of_images)


@pytest.mark.parametrize("name", ["", "Tools", "1st", "tools-", "a b", "x" * 41, "sojourn:x"])
def test_names_that_no_cloud_takes(name: str) -> None:
    with pytest.raises(InvalidInput, match="name: must start with a letter"):
        images.make(name, SCRIPT, cloud="aws")


def test_a_script_is_required() -> None:
    with pytest.raises(InvalidInput, match="script: required"):
        images.make("tools", " \n", cloud="aws")


def test_a_container_image_is_no_base() -> None:
    with pytest.raises(InvalidInput, match="must be a machine image"):
        images.make("tools", SCRIPT, cloud="aws", image="docker://python:3.12")
