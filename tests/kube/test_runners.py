"""CI runners in pods: jobs reach nothing of the agent's, and a pod that is lost is replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from sojourn import runners
from sojourn.core.status import State
from tests.contract.clouds.k8s_kit import KubernetesKit
from tests.kube import images, layout
from tests.simforge.github import SimGitHub
from tests.simforge.server import SimForge, served
from tests.simforge.work import Job
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(
    bool(os.environ.get("SOJOURN_TEST_KUBECONFIG")),
    reason="pods must reach a server of this computer: unset SOJOURN_TEST_KUBECONFIG",
)

_NOSY = """
echo "I am $(id -un)"
env
cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' || :
grep -rsI . /sojourn /var/run/secrets /run/secrets /root || :
echo "looked around"
"""


@pytest.fixture
def forge(kit: KubernetesKit) -> Iterator[SimForge]:
    """Where pods and this computer reach it."""
    with served(SimGitHub(), layout.GATEWAY) as made:
        yield made


def launched(kit: KubernetesKit, forge: SimForge, **more: Any) -> runners.Launched:
    given = {"driver": "github", "repo": forge.repo, "token": forge.token, "single": False}
    made = runners.launch(**{**given, "cloud": kit.cloud, "image": images.PYTHON, **more})
    assert made is not None
    return made


def finished(forge: SimForge, job: Job) -> Job:
    until(lambda: forge.work.settled(job).status == "completed", 60)
    return job


def test_jobs_find_no_token(kit: KubernetesKit, forge: SimForge) -> None:
    runner = launched(kit, forge, token_on_machine=True, idle_timeout=300)
    job = finished(forge, forge.work.queue(_NOSY))
    assert job.conclusion == "success"
    assert "I am runner" in job.log
    assert "looked around" in job.log
    assert forge.token not in job.log
    runner.remove(token=forge.token)
    assert forge.work.runners == {}


def test_the_default_image_runs_the_program(kit: KubernetesKit, forge: SimForge) -> None:
    """It has no ICU, which the program needs or has to be told of its absence; both ways to
    register."""
    for single in (False, True):
        image = {"image": "ubuntu", "idle_timeout": 300, "single": single}
        runner = launched(kit, forge, **image)
        job = finished(forge, forge.work.queue("ldconfig -p | grep libicuuc || echo no ICU here"))
        assert "no ICU here" in job.log
        runner.remove(token=forge.token)
    assert forge.work.runners == {}


def test_a_loss_in_the_middle_of_a_job(kit: KubernetesKit, forge: SimForge) -> None:
    runner = launched(kit, forge, token_on_machine=True, idle_timeout=15)
    job = forge.work.queue("sleep 8")
    until(lambda: any(file.path == "jobs/now" for file in runner.changed()))
    kit.lose_agent(runner, 0)
    until(lambda: job.attempt == 2 and job.conclusion == "success", 120)
    until(lambda: runner.status().state is State.SUCCEEDED, 60)
    assert forge.work.ever == 1
    assert forge.work.runners == {}
    runner.remove(token=forge.token)
