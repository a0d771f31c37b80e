"""Every forge goes through the same suite, with runners on this computer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.clouds.kit import in_use
from tests.contract.clouds.local_kit import LocalKit
from tests.contract.forges.bench import Bench
from tests.contract.forges.kits import FORGES
from tests.simforge.server import SimForge, served

_VARIABLES = (
    *("CI_PROJECT_URL", "CML_TOKEN", "GITHUB_REPOSITORY", "GITHUB_TOKEN", "REPO_TOKEN"),
    *("BITBUCKET_TOKEN", "FORGEJO_TOKEN", "GITEA_TOKEN", "GITLAB_TOKEN", "GH_TOKEN"),
)


_FIRST = "github"  # goes through all of it in ordinary runs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drivers differ most in what all is well for; what goes wrong is mostly the same code."""
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        first = f"[{_FIRST}" in item.name
        if item.path.stem == "test_trouble":
            item.add_marker(pytest.mark.slow if first else pytest.mark.full)
        elif item.path.stem == "test_runners" and not first:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=sorted(FORGES))
def forge(request: pytest.FixtureRequest) -> Iterator[SimForge]:
    with served(FORGES[request.param]()) as made:
        made.driver = request.param
        yield made


@pytest.fixture
def bench(forge: SimForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """At the end, nothing may be left of any runner, here or at the forge."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    source = f"SOJOURN_RUNNER_SOURCE_{forge.driver.upper()}"
    monkeypatch.setenv(source, f"{forge.url}/_download")
    if forge.tools:
        monkeypatch.setenv("PATH", f"{forge.tools}:{os.environ['PATH']}")
    for name, value in forge.environment().items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "cloud"
    root.mkdir()
    with in_use(LocalKit(root), monkeypatch) as kit:
        bench = Bench(forge, kit)
        yield bench
        bench.clear()
