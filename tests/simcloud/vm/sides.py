"""What tests with machines need to know of a simulated cloud, beside what all accounts have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pytest

from sojourn import Handle
from tests.simcloud.machines.running import RunningMachine
from tests.support.waiting import until


class Side(Protocol):
    """One cloud, with its kit and its account."""

    kit: Any  # a VmKit
    account: Any
    notice: str  # what a machine says of a notice
    warning: str  # what it says of one that ends nothing
    fetched: str  # the call by which machines fetch objects
    listed: str  # and list them
    machines: str  # who machines are, with wildcards
    denied: dict[str, Any]  # how a fault denies access
    default_type: str  # the machine that tasks get
    late: str  # what a machine says whose credentials are late

    def warn(self, instance: Any) -> None:
        """Tell a machine something that ends nothing."""

    def wanted(self) -> list[int]:
        """How many machines each group wants."""

    def shared_network(self) -> AbstractContextManager[dict[str, Any]]:
        """What tasks have to have to be in one network."""

    def make_bucket(self, name: str) -> None:
        """One of the user's, in another region than tasks."""

    def remove_bucket(self, name: str) -> None:
        """It is empty."""

    def objects(self, bucket: str) -> Mapping[str, bytes]:
        """All that is in a bucket."""

    def paths(self, bucket: str) -> list[str]:
        """Their names alone, which takes no time."""

    def put(self, bucket: str, path: str, content: bytes) -> None:
        """Write an object."""

    def remove(self, bucket: str, path: str) -> None:
        """Remove one."""

    def no_keys(self, seconds: float) -> None:
        """Have machines get no credentials for as long after their start."""

    def keys_at_last(self, seconds: float) -> None:
        """That time is over."""

    def secrets(self) -> list[str]:
        """Of the laptop."""

    def in_account(self, name: str) -> Iterator[Any]:
        """All that services keep of a task beside its store; first scripts as bytes."""

    def check_rights(self, machine: RunningMachine, name: str) -> None:
        """With the machine's own credentials, all that is not its business is refused."""


def sides(*names: str, full: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Have a test run on these clouds; on those of `full` only in runs of everything."""
    more = [pytest.param(name, marks=pytest.mark.full) for name in full]
    return pytest.mark.parametrize("side", [*names, *more], indirect=True)


def gone(instance: Any) -> bool:
    """It ended, whether its cloud still tells of it or not."""
    return instance.state in ("", "terminated")


def machine_of(side: Side, handle: Handle, rank: int = 0) -> Any:
    """The instance that carries out a rank."""
    until(lambda: handle.status().ranks[rank].machine)
    wanted = handle.status().ranks[rank].machine
    [found] = [each for each in side.account.instances() if wanted in _ids(each)]
    return found


def _ids(instance: Any) -> tuple[str, ...]:
    return instance.id, getattr(instance, "vm_id", "")


def outcomes(handle: Handle) -> list[str]:
    return [report.outcome.value for report in handle.reports()]
