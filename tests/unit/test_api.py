"""Finding tasks by parts of their ids."""

from __future__ import annotations

import pytest

import sojourn
from sojourn.core.errors import NotFound

pytestmark = pytest.mark.usefixtures("own_folders")


@pytest.mark.parametrize("part", ["", "t", "tp", "tpi", "tpi-", "-", "tpi--"])
def test_what_every_id_has_in_common_means_none(part: str) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\n", name="zebra"))
    try:
        with pytest.raises(NotFound):
            sojourn.get(part)
        for enough in ("z", "tpi-z", handle.id[:-1].removesuffix("-"), handle.id):
            assert sojourn.get(enough).id == handle.id
    finally:
        handle.delete()
