"""Marks all tests here, and gives them a Gitea."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.clouds.kit import in_use
from tests.contract.clouds.local_kit import LocalKit
from tests.forge.gitea import Gitea, Repo
from tests.forge.server import running, unavailable
from tests.simforge.gitea import SimGitea
from tests.simforge.server import served


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.forge)


@pytest.fixture(scope="session")
def gitea() -> Iterator[Gitea]:
    """One that runs; tests are skipped where there can be none."""
    if why := unavailable():
        pytest.skip(why)
    with running() as made:
        yield made


@pytest.fixture
def repo(gitea: Gitea) -> Repo:
    return gitea.repo(f"widgets-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalKit]:
    """The local cloud, and a place that the runner program comes from."""
    root = tmp_path / "cloud"
    root.mkdir()
    for name in ("CML_TOKEN", "REPO_TOKEN", "GITEA_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with served(SimGitea()) as source, in_use(LocalKit(root), monkeypatch) as made:
        for name, value in source.environment().items():
            monkeypatch.setenv(name, value)
        yield made
