"""Machines for the tests of simulated clouds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simcloud.machines import traces
from tests.simcloud.machines.host import Host


@pytest.fixture
def host() -> Iterator[Host]:
    """A host for machines, which leaves nothing; the test is skipped where there can be none."""
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    before = traces.found()
    with Host() as host:
        yield host
    assert traces.found() == before
