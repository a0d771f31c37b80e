"""An account without machines, and a laptop that knows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.vm import agent_files
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User


@pytest.fixture
def sim() -> Iterator[SimAWS]:
    with SimAWS() as account:
        yield account


@pytest.fixture
def laptop(sim: SimAWS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimAWS:
    """The account, with this process as a laptop of its administrator."""
    for name in [n for n in os.environ if n.startswith(("AWS_", "CI", "GITHUB_", "TPI_"))]:
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
def user(sim: SimAWS) -> Iterator[User]:
    user = User(sim.environment())
    yield user
    user.close()
