"""Marks all tests here, and gives them a cluster, or a namespace of one for tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.clouds import k8s_kit
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.contract.clouds.kit import in_use
from tests.contract.clouds.lab import Lab
from tests.kube.fixtures import kube_cluster, kube_namespace, mpi_operator

__all__ = ["kit", "kube_cluster", "kube_namespace", "lab", "mpi_operator"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kube)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubernetesKit]:
    """A namespace of a real cluster; at the end it has to be empty again."""
    with in_use(k8s_kit.make(tmp_path_factory), monkeypatch) as made:
        yield made


@pytest.fixture
def lab(kit: KubernetesKit, tmp_path: Path) -> Lab:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    return Lab(kit, workdir)
