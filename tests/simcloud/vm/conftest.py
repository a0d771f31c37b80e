"""Each test of this folder runs on every simulated cloud whose machines boot."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest

from tests.contract.clouds.kit import in_use
from tests.contract.clouds.vm_kit import VmKit
from tests.simcloud.vm.sides import Side


@pytest.fixture(params=["aws", "gcp"])
def side(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Side]:
    """A cloud as the contract suite has it: with machines, and empty at the end."""
    kit = import_module(f"tests.contract.clouds.{request.param}_kit").make(tmp_path_factory)
    made: Side = import_module(f"tests.simcloud.vm.{request.param}_side").make(kit)
    with in_use(kit, monkeypatch):
        yield made


@pytest.fixture
def kit(side: Side) -> VmKit:
    made: VmKit = side.kit
    return made
