"""An AWS account without machines, and this computer as its user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.clouds.aws import resources
from tests.simcloud.aws.account import SimAWS


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimAWS]:
    # Nobody runs the agent.
    monkeypatch.setattr(resources, "bundle", lambda *_: b"agent")
    with SimAWS() as made:
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            monkeypatch.setenv(name, str(tmp_path))
        monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
        yield made
