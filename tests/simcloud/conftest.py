"""Machines and accounts for the tests of simulated clouds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.simcloud.machines import traces
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.traces import threads_since

if TYPE_CHECKING:  # all take a while to load, and not all tests need them
    from tests.contract.clouds.aws_kit import AwsKit
    from tests.contract.clouds.lab import Lab
    from tests.simcloud.aws.account import SimAWS
    from tests.simcloud.aws_user import User
    from tests.simcloud.az.account import SimAzure
    from tests.simcloud.az_user import User as AzureUser
    from tests.simcloud.gcp.account import SimGCP
    from tests.simcloud.gcp_user import User as Googler


@pytest.fixture
def host() -> Iterator[Host]:
    """A host for machines, which leaves nothing; the test is skipped where there can be none."""
    reason = Host.unavailable()
    if reason:
        pytest.skip(reason)
    before = traces.found()
    with Host() as host:
        yield host
    # Of what other tests left open, some may have gone meanwhile.
    assert not Counter(traces.found()) - Counter(before)


@pytest.fixture
def aws() -> Iterator[SimAWS]:
    """An AWS account without machines, which leaves no thread."""
    from tests.simcloud.aws.account import SimAWS

    before = threading.enumerate()
    with SimAWS() as aws:
        yield aws
    assert not threads_since(before)


@pytest.fixture
def user(aws: SimAWS) -> Iterator[User]:
    """Who may do everything in that account."""
    from tests.simcloud.aws_user import User

    user = User(aws.environment())
    yield user
    user.close()


@pytest.fixture
def gcp() -> Iterator[SimGCP]:
    """A Google Cloud project without machines, which leaves no thread."""
    from tests.simcloud.gcp.account import SimGCP

    before = threading.enumerate()
    with SimGCP() as gcp:
        yield gcp
    assert not threads_since(before)


@pytest.fixture
def googler(gcp: SimGCP) -> Iterator[Googler]:
    """Who may do everything in that project."""
    from tests.simcloud.gcp_user import User as Googler

    googler = Googler(gcp.environment())
    yield googler
    googler.close()


@pytest.fixture
def az() -> Iterator[SimAzure]:
    """An Azure subscription without machines, which leaves no thread."""
    from tests.simcloud.az.account import SimAzure

    before = threading.enumerate()
    with SimAzure() as az:
        yield az
    assert not threads_since(before)


@pytest.fixture
def az_user(az: SimAzure, monkeypatch: pytest.MonkeyPatch) -> Iterator[AzureUser]:
    """Who may do everything in that subscription, on a laptop that is set up for it."""
    from tests.simcloud.az_user import User

    for name, value in az.environment().items():
        monkeypatch.setenv(name, value)
    user = User(az.environment())
    yield user
    user.close()


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsKit]:
    """AWS as the contract suite has it: with machines, and empty at the end."""
    from tests.contract.clouds import aws_kit
    from tests.contract.clouds.kit import in_use

    with in_use(aws_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def lab(kit: AwsKit, tmp_path: Path) -> Lab:
    """Short names for running tasks on it."""
    from tests.contract.clouds.lab import Lab

    (tmp_path / "workdir").mkdir()
    return Lab(kit, tmp_path / "workdir")
