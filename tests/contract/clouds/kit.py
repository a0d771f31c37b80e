"""What the contract suite needs to know of a cloud beside the product's own API.

A cloud joins the suite by a module NAME_kit.py beside this one, which has `contract`, a function
that makes a kit: an object with these members. Its `MARKS` are the marks of all its tests; with
`SHARES`, ordinary runs leave some of the suite out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import pytest

from sojourn import Handle


class Kit(Protocol):
    """One cloud under test, with an account of its own that starts out empty."""

    cloud: str

    def environment(self) -> dict[str, str]:
        """Variables that the product needs to find this cloud and nothing else."""

    def machine_disk(self, size: int) -> Path | None:
        """Give machines a disk of this many bytes from now on; None if that cannot be had."""

    def appear(self, name: str) -> None:
        """Make a file of this name appear in /dev/shm of all machines that are alive."""

    def lose_agent(self, handle: Handle, rank: int) -> None:
        """Kill the agent of a rank with SIGKILL: the machine is gone without a word."""

    def lose_scaler(self, handle: Handle) -> bool:
        """Kill the scaler with SIGKILL; False if this cloud's scaler cannot die."""

    def age(self, seconds: float) -> None:
        """Make all that is stored this much older."""

    def processes(self) -> list[str]:
        """All processes of all machines that are alive, and of scalers."""

    def leaks(self) -> list[str]:
        """All that exists in the account; nothing, once every task was deleted."""

    def inside(self) -> tuple[str, str] | None:
        """How a script in a machine runs the agent's Python, and the file that names its store.

        None if a script can reach neither.

        The file is JSON, with `store` and perhaps `store_options`; its path may be relative to the
        workdir.
        """

    def mpi(self) -> dict[str, str] | None:
        """Variables with which a script finds `mpirun.openmpi`; None if machines have none."""

    def close(self) -> None:
        """Remove the account."""


AnyKit = TypeVar("AnyKit", bound=Kit)


@contextmanager
def in_use(made: AnyKit, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnyKit]:
    """A cloud with an empty account; at the end it has to be empty again."""
    for name in [name for name in os.environ if name.startswith(("CI", "GITHUB_", "TPI_"))]:
        monkeypatch.delenv(name)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    try:
        yield made
        leaks = made.leaks()
    finally:
        made.close()
    assert leaks == [], leaks
