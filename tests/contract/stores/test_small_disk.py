"""The server of these tests itself: what it needs of the computer that it runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.storage.store import open_store
from tests.support.disks import small_disk
from tests.support.seaweed import Seaweed

pytestmark = pytest.mark.slow


def test_the_s3_server_has_more_buckets_than_the_disk_has_gigabytes(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "300m") as disk, Seaweed(disk=disk) as server:
        for number in range(8):
            store = open_store(server.address())
            store.put("object", str(number).encode())
            assert store.get("object") == str(number).encode()
