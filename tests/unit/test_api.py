"""Finding tasks by parts of their ids."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.core.errors import InvalidInput

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.mark.parametrize("part", ["", "t", "tp", "tpi", "tpi-", "-", "tpi--"])
def test_what_every_id_has_in_common_means_none(part: str) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="zebra"))
    try:
        with pytest.raises(InvalidInput) as caught:
            sojourn.get(part)
        assert str(caught.value) == f"id: {part!r} is how every id begins; give more of it"
        for enough in ("z", "tpi-z", handle.id[:-1].removesuffix("-"), handle.id):
            assert sojourn.get(enough).id == handle.id
    finally:
        handle.delete()


def test_what_begins_like_every_id_may_be_a_name() -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="tp-tree"))
    try:
        for part in ("t", "tp"):
            assert sojourn.get(part).id == handle.id
    finally:
        handle.delete()


def test_public_names_are_listed() -> None:
    assert {*sojourn.__all__, "__version__"} <= set(dir(sojourn))
    assert "import_module" not in dir(sojourn)
