from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.aws import account
from sojourn.clouds.vm import agent_files
from sojourn.core.context import Context
from tests.simcloud.aws.account import SimAWS
from tests.unit.clouds.aws.faults.laptop import Laptop

_sleep = Context.sleep


@pytest.fixture
def sim() -> Iterator[SimAWS]:
    """An account without machines."""
    with SimAWS(None) as sim:
        sim.timing.deletion = sim.timing.respawn = 0.0
        yield sim


@pytest.fixture
def laptop(sim: SimAWS, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Laptop:
    """Its SDK does not try again by itself, and nobody waits for long."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in sim.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(account, "_TRIES", 1)
    monkeypatch.setattr(agent_files, "bundle", lambda *_: b"the agent")
    monkeypatch.setattr(Context, "sleep", lambda self, seconds: _sleep(self, min(seconds, 0.02)))
    return Laptop(sim)
