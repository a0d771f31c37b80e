"""Every kind of store, opened afresh for each test."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sojourn.storage.served.client import ServedStore
from sojourn.storage.store import Store, StoreAddress, open_store
from tests.support.seaweed import Seaweed
from tests.support.streams import served


@pytest.fixture(params=["folder", "folder-without-links", "served", "s3", "s3-with-prefix"])
def medium(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def address(
    medium: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StoreAddress:
    if medium == "folder-without-links":
        monkeypatch.setattr(os, "link", _refuse)
    if not medium.startswith("s3"):
        return StoreAddress(f"file://{tmp_path}")
    server: Seaweed = request.getfixturevalue("seaweed")
    return server.address("a folder/in it" if medium == "s3-with-prefix" else "")


@pytest.fixture
def store(medium: str, address: StoreAddress, tmp_path: Path) -> Iterator[Store]:
    if medium == "served":
        with ServedStore(lambda: served(tmp_path)) as store:
            yield store
    else:
        yield open_store(address)


def _refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
