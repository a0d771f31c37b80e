"""A folder, its server in a process of its own, and the store of its client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.storage.served.client import ServedStore
from tests.support.streams import served


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[ServedStore]:
    with ServedStore(lambda: served(folder)) as store:
        yield store
