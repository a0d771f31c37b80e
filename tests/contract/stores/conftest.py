"""Every kind of store, opened afresh for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.seaweed import Seaweed


@pytest.fixture(params=["folder", "s3", "s3-with-prefix"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    if request.param == "folder":
        return StoreAddress(f"file://{tmp_path}")
    server: Seaweed = request.getfixturevalue("seaweed")
    return server.address("a folder/in it" if request.param == "s3-with-prefix" else "")


@pytest.fixture
def store(address: StoreAddress) -> Store:
    return open_store(address)
