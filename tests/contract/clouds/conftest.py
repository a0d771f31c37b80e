"""Every cloud goes through the same suite, and leaves nothing behind after any of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.contract.clouds import aws_kit, local_kit
from tests.contract.clouds.kit import Kit, in_use
from tests.contract.clouds.lab import Lab

_KITS: dict[str, Callable[[pytest.TempPathFactory], Kit]] = {
    "aws": aws_kit.make,
    "local": local_kit.make,
}


_SLOW = ("aws",)  # its machines boot; `make test-slow` runs these


def _parameter(name: str) -> ParameterSet:
    return pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ())


@pytest.fixture(params=map(_parameter, sorted(_KITS)))
def kit(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Kit]:
    """A cloud with an empty account; at the end it has to be empty again."""
    with in_use(_KITS[request.param](tmp_path_factory), monkeypatch) as made:
        yield made


@pytest.fixture
def lab(kit: Kit, tmp_path: Path) -> Lab:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    return Lab(kit, workdir)
