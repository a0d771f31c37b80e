from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sojourn.clouds.az import scaler
from sojourn.clouds.vm import agent_files, rest
from sojourn.core.context import Context
from tests.simcloud.az.account import SimAzure
from tests.unit.clouds.az.faults.laptop import Laptop

_sleep = Context.sleep


@pytest.fixture
def sim() -> Iterator[SimAzure]:
    """A subscription without machines."""
    with SimAzure() as sim:
        sim.timing.deletion = sim.timing.shutdown = 0.0  # nobody is there to store anything
        sim.timing.storage = sim.timing.network = sim.timing.scale_set = 0.0
        sim.timing.group_gone = sim.timing.image = 0.0
        yield sim


@pytest.fixture
def laptop(sim: SimAzure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Laptop:
    """It does not try again by itself, and nobody waits for long."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    for name, value in sim.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(rest, "_TRIES", 1)
    monkeypatch.setattr(scaler, "_RETRY_AFTER", timedelta(0))
    monkeypatch.setattr(agent_files, "bundle", lambda *_: b"the agent")
    monkeypatch.setattr(Context, "sleep", lambda self, seconds: _sleep(self, min(seconds, 0.02)))
    return Laptop(sim)
