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


@pytest.fixture(params=map(_parameter, sorted(clouds.NAMES)))
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
