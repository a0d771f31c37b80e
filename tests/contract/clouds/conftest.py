"""Every cloud goes through the same suite, and leaves nothing behind after any of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.contract.clouds import aws_kit, local_kit
from tests.contract.clouds.kit import Kit, in_use
from tests.contract.clouds.lab import Lab


def _aws(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    if not _REAL:
        return aws_kit.make(tmp_path_factory)
    from tests.contract.clouds import aws_real_kit  # the account is asked at once

    return aws_real_kit.make(tmp_path_factory)


_REAL = os.environ.get("SOJOURN_TEST_AWS") == "real"
_KITS: dict[str, Callable[[pytest.TempPathFactory], Kit]] = {
    "aws": _aws,
    "local": local_kit.make,
}


_SLOW = ("aws",)  # its machines boot; `make test-slow` runs these


def _parameter(name: str) -> ParameterSet:
    if name not in _SLOW:
        return pytest.param(name)
    patience = [pytest.mark.timeout(3600)] if _REAL else []
    return pytest.param(name, marks=[pytest.mark.slow, *patience])


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
