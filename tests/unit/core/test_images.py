"""Names of container images."""

from __future__ import annotations

import pytest

from sojourn.core.errors import InvalidInput
from sojourn.core.images import container_image, made_image

_DIGEST = f"@sha256:{'0a' * 32}"


@pytest.mark.parametrize(
    "name",
    [
        "python",
        "python:3.12-slim",
        "nvidia/cuda:12.6.3-runtime-ubuntu24.04",
        "ghcr.io/some-body/a_b/c__d.e:Latest_1",
        "localhost/x",
        "localhost:5000/x",
        "registry:5000/x:1",
        "123456789012.dkr.ecr.us-east-1.amazonaws.com/x:1",
        "Registry.Example.com:443/x",
        f"python{_DIGEST}",
        f"example.com/python:3.12{_DIGEST}",
    ],
)
def test_what_can_be_an_image(name: str) -> None:
    assert container_image(f"docker://{name}") == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "Python",
        "me/Python",
        "python:",
        "python:-x",
        "python:3.12:1",
        "python 3",
        "python\n",
        "--privileged",
        "-v/:/host",
        "docker://python",
        "http://example.com/x",
        "example.com:port/x",
        "a//b",
        "a/",
        "python@sha256:0a",
        f"x{_DIGEST}{_DIGEST}",
        "p\u00efthon",
        "python:" + "x" * 129,
        "x" * 256,
    ],
)
def test_what_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="image: must be docker://") as caught:
        container_image(f"docker://{name}")
    assert caught.value.path == "image"


@pytest.mark.parametrize("image", ["", "ubuntu", "ubuntu@1:x86_64:name", "Docker://x"])
def test_what_is_none_is_left_alone(image: str) -> None:
    assert container_image(image) == ""


def test_the_name_of_an_image_that_was_made() -> None:
    assert made_image("sojourn:tools-2") == "tools-2"
    assert made_image("ubuntu") == ""
    with pytest.raises(InvalidInput, match=r"image: the name after sojourn: must start"):
        made_image("sojourn:Tools")
