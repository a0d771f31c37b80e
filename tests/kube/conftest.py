"""Marks all tests here, and gives them a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube.fixtures import kube_cluster, kube_namespace

__all__ = ["kube_cluster", "kube_namespace"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kube)
