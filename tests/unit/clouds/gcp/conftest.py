"""A project without machines, and a laptop that knows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.vm import agent_files
from sojourn.core.context import Context
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp_user import User

_sleep = Context.sleep
_OTHERS = ("CI", "CLOUDSDK_", "GCE_", "GCLOUD_", "GCP_", "GITHUB_", "GOOGLE_", "TPI_")


@pytest.fixture
def sim() -> Iterator[SimGCP]:
    with SimGCP() as project:
        yield project


@pytest.fixture(scope="module")
def lasting() -> Iterator[SimGCP]:
    """For all tests of a module which make nothing: a project takes a while to begin."""
    with SimGCP() as project:
        yield project


def _use(sim: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process a laptop of the administrator."""
    for name in [name for name in os.environ if name.startswith(_OTHERS)]:
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
    # Nobody waits for long.
    sim.timing.operation = sim.timing.respawn = sim.timing.shutdown = 0.0
    monkeypatch.setattr(Context, "sleep", lambda self, seconds: _sleep(self, min(seconds, 0.02)))


@pytest.fixture
def project(sim: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimGCP:
    """The project, with this process as a laptop of its administrator."""
    _use(sim, tmp_path, monkeypatch)
    return sim


@pytest.fixture
def untouched(lasting: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimGCP]:
    """The same, with a project in which nothing is made."""
    _use(lasting, tmp_path, monkeypatch)
    lasting.calls.clear()
    yield lasting
    assert lasting.inventory() == []


@pytest.fixture
def user(sim: SimGCP) -> Iterator[User]:
    user = User(sim.environment())
    yield user
    user.close()
