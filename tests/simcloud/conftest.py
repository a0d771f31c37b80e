"""Machines and accounts for the tests of simulated clouds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.simcloud.machines import traces
from tests.simcloud.machines.host import Host

if TYPE_CHECKING:  # both take a while to load, and not all tests need them
    from tests.simcloud.aws.account import SimAWS
    from tests.simcloud.aws_user import User


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


@pytest.fixture
def aws() -> Iterator[SimAWS]:
    """An AWS account without machines, which leaves no thread."""
    from tests.simcloud.aws.account import SimAWS

    before = threading.enumerate()
    with SimAWS() as aws:
        yield aws
    assert threading.enumerate() == before


@pytest.fixture
def user(aws: SimAWS) -> Iterator[User]:
    """Who may do everything in that account."""
    from tests.simcloud.aws_user import User

    user = User(aws.environment())
    yield user
    user.close()
