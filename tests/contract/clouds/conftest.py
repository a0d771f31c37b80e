"""Every cloud goes through the same suite, and leaves nothing behind after any of it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.mark import ParameterSet

from sojourn import clouds
from tests.contract.clouds.kit import Kit, in_use
from tests.contract.clouds.lab import Lab


def _module(cloud: str) -> ModuleType:
    return import_module(f"tests.contract.clouds.{cloud}_kit")


def _parameter(cloud: str) -> ParameterSet:
    return pytest.param(cloud, marks=_module(cloud).MARKS)


# What ordinary runs leave out on clouds that share most of their code with another one that goes
# through all of it: `make test-full` runs it.
_IN_FULL = (
    *("test_crashes", "test_faults", "test_files", "test_gangs", "test_kept", "test_machines"),
    *("test_meetings", "test_mpi", "test_reach", "test_verbs", "test_warm"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        cloud = callspec.params.get("kit") if callspec else None
        if cloud and item.path.stem in _IN_FULL and getattr(_module(cloud), "SHARES", False):
            item.add_marker(pytest.mark.full)


@pytest.fixture(params=map(_parameter, sorted(clouds.KINDS)))
def kit(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Kit]:
    """A cloud with an empty account; at the end it has to be empty again."""
    with in_use(_module(request.param).contract(tmp_path_factory), monkeypatch) as made:
        yield made


@pytest.fixture
def lab(kit: Kit, tmp_path: Path) -> Lab:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    return Lab(kit, workdir)
