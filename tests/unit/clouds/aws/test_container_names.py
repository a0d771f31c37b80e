"""How a place in a bucket of the user's is written."""

from __future__ import annotations

import pytest

from sojourn.clouds.aws.locations import parse_container
from sojourn.core.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "bucket", "folder"),
    [
        ("name", "name", None),
        ("name/", "name", ""),
        ("name/path", "name", "path"),
        ("name/a/b=1/", "name", "a/b=1"),
    ],
)
def test_containers_are_named_as_the_old_provider_did(
    text: str, bucket: str, folder: str | None
) -> None:
    assert parse_container(text) == (bucket, folder)


@pytest.mark.parametrize(
    "text",
    [
        "s3://name",
        "Name",
        "na",
        "name/../other",
        "name/a//x",
        "name/a*",
        "name/ä",
        "name/" + 260 * "x",
    ],
)
def test_what_is_no_container_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_container(text)
    assert caught.value.path == "storage.container"
