"""Drivers, with a simulated forge of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sojourn.core.runner import Runner
from tests.simforge.bitbucket import SimBitbucket
from tests.simforge.gitlab import SimGitLab
from tests.simforge.server import served

TASK = "tpi-builder-1abcdefg-2hijklmn"


@pytest.fixture
def gitlab(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimGitLab]:
    forge = SimGitLab()
    with served(forge):
        monkeypatch.setenv("SOJOURN_RUNNER_SOURCE_GITLAB", f"{forge.url}/_download")
        yield forge


@pytest.fixture
def bitbucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimBitbucket]:
    forge = SimBitbucket()
    with served(forge):
        monkeypatch.setenv("SOJOURN_RUNNER_SOURCE_BITBUCKET", f"{forge.url}/_download")
        yield forge


@pytest.fixture
def runner() -> Runner:
    return Runner("gitlab", "https://example.com/acme/widgets", "builder", TASK)
