"""Every kind of store, opened afresh for each test."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.seaweed import Seaweed


@pytest.fixture(params=["folder", "folder-without-links", "s3", "s3-with-prefix"])
def address(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreAddress:
    if request.param.startswith("folder"):
        if request.param == "folder-without-links":
            monkeypatch.setattr(os, "link", _refuse)
        return StoreAddress(f"file://{tmp_path}")
    server: Seaweed = request.getfixturevalue("seaweed")
    return server.address("a folder/in it" if request.param == "s3-with-prefix" else "")


@pytest.fixture
def store(address: StoreAddress) -> Store:
    return open_store(address)


def _refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
