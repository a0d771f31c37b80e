"""Runners of a real Gitea on a simulated machine of a cloud, with a user for its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from sojourn import runners
from tests.contract.clouds import aws_kit
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.kit import in_use
from tests.forge.gitea import Repo
from tests.simcloud.machines.serving import forward
from tests.simcloud.machines.spec import Endpoint
from tests.simforge.gitea import SimGitea
from tests.simforge.server import served
from tests.support.waiting import until


@pytest.fixture
def kit(
    repo: Repo, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AwsKit]:
    """Machines reach Gitea, and the place that the runner program comes from."""
    with (
        served(SimGitea()) as source,
        in_use(aws_kit.make(tmp_path_factory), monkeypatch) as made,
    ):
        for name, value in source.environment().items():
            monkeypatch.setenv(name, value)
        ports = {urlsplit(url).port or 0 for url in (repo.url, source.url)}
        made.host.reachable = tuple(
            Endpoint("127.0.0.1", port, forward("127.0.0.1", port)) for port in ports
        )
        yield made


def test_a_workflow_is_carried_out(repo: Repo, kit: AwsKit) -> None:
    run = repo.push("echo hello from $(id -un)")
    runner = runners.launch(
        driver="gitea",
        repo=repo.url,
        token=repo.gitea.token,
        cloud=kit.cloud,
        single=False,
        idle_timeout=10,
        token_on_machine=True,
    )
    assert runner is not None
    until(lambda: repo.run(run)["status"] == "completed", 60)
    assert repo.run(run)["conclusion"] == "success"
    assert "hello from runner" in repo.log(run)
    until(lambda: runner.status().state.ended, 60)
    assert repo.runners() == []
    runner.remove(token=repo.gitea.token)
