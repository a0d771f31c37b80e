from __future__ import annotations

import pytest

from sojourn.core.context import Context
from tests.simcloud.gcp.account import SimGCP
from tests.unit.clouds.gcp.faults.laptop import Laptop

_sleep = Context.sleep


@pytest.fixture
def laptop(project: SimGCP, monkeypatch: pytest.MonkeyPatch) -> Laptop:
    """Nobody waits for long."""
    project.timing.operation = project.timing.respawn = project.timing.shutdown = 0.0
    monkeypatch.setattr(Context, "sleep", lambda self, seconds: _sleep(self, min(seconds, 0.02)))
    return Laptop(project)
