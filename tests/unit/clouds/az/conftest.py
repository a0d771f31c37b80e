"""A subscription without machines, and a laptop that knows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.vm import agent_files
from tests.simcloud.az.account import SimAzure
from tests.simcloud.az_user import User


@pytest.fixture
def sim() -> Iterator[SimAzure]:
    with SimAzure() as account:
        account.timing.deletion = account.timing.shutdown = 0.0  # nobody has anything to store
        yield account


@pytest.fixture
def laptop(sim: SimAzure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimAzure:
    """The subscription, with this process as a laptop of its administrator."""
    for name in [n for n in os.environ if n.startswith(("AZURE_", "CI", "GITHUB_", "TPI_"))]:
        monkeypatch.delenv(name)
    folders = {
        "HOME": tmp_path,
        "XDG_DATA_HOME": tmp_path / "data",
        "XDG_CACHE_HOME": tmp_path / "cache",
        "XDG_STATE_HOME": tmp_path / "state",
    }
    for name, value in {**sim.environment(), **folders}.items():
        monkeypatch.setenv(name, str(value))
    # Nobody is there to unpack it.
    monkeypatch.setattr(agent_files, "bundle", lambda *_: b"agent")
    return sim


@pytest.fixture
def user(sim: SimAzure) -> Iterator[User]:
    user = User(sim.environment())
    yield user
    user.close()
