"""Limits small enough for examples to be quick, and a home for results."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn.storage import reading, snapshot
from tests.unit.storage.home import Home

SMALL = 64
CHUNK = 256
PACK = 512


@pytest.fixture
def tiny_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few bytes take all the ways that large ones do."""
    monkeypatch.setattr(reading, "SMALL", SMALL)
    monkeypatch.setattr(snapshot, "SMALL", SMALL)
    monkeypatch.setattr(reading, "CHUNK", CHUNK)
    monkeypatch.setattr(reading, "PACK", PACK)


@pytest.fixture
def quick_cooling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are left to cool for a tick of the clock of this file system, and no longer."""
    monkeypatch.setattr(reading, "_COOL", 11_000_000)
    monkeypatch.setattr(reading, "_FIRST_PAUSE", 0.002)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)
