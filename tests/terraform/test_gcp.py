"""The whole life of a task on Google Cloud, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.clouds import gcp_kit
from tests.contract.clouds.gcp_kit import GcpKit
from tests.contract.clouds.kit import in_use
from tests.simcloud.gcp_user import User
from tests.terraform.machine_life import live_as_machine
from tests.terraform.project import Project
from tests.terraform.runner_life import live_as_runner, on_machines
from tests.terraform.whole_life import give_account, live, task_on

pytestmark = pytest.mark.slow

_IMAGE = "ubuntu@ubuntu-os-cloud/ubuntu-2404-lts-amd64"
_TASK = task_on("gcp", _IMAGE)


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GcpKit]:
    with in_use(gcp_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def on_gcp(kit: GcpKit, project: Project) -> Project:
    return give_account(project, kit, "CLOUDSDK_", "GOOGLE_", "NO_GCE_CHECK", "SOJOURN_GCP_")


def test_whole_life(kit: GcpKit, on_gcp: Project) -> None:
    def check(task: dict[str, Any], public: str) -> None:
        user = User(kit.environment())
        template = user.get(f"global/instanceTemplates/{task['id']}")["properties"]
        user.close()
        assert template["scheduling"]["provisioningModel"] == "SPOT"
        assert template["scheduling"]["maxRunDuration"]["seconds"] == "7200"
        metadata = {each["key"]: each["value"] for each in template["metadata"]["items"]}
        assert metadata["ssh-keys"].startswith(f"ubuntu:{public}")

    live(kit, on_gcp, _TASK, check=check)


def test_what_google_refuses_is_told_by_the_plan(kit: GcpKit, on_gcp: Project) -> None:
    on_gcp.write(_TASK.replace('machine     = "m"', 'machine     = "m+k80"'))
    on_gcp.init()
    assert "Google Cloud withdrew K80s: use m+t4, l+t4 or m+l4" in on_gcp.plan(code=1).said
    on_gcp.write(_TASK.replace('region      = "us-west"', 'region      = "us-west1"'))
    assert "region: must be a zone, such as us-west1-b" in on_gcp.plan(code=1).said
    assert kit.leaks() == []


def test_a_machine(kit: GcpKit, on_gcp: Project) -> None:
    live_as_machine(kit, on_gcp, "gcp", _IMAGE)


@pytest.mark.full
def test_a_runner(kit: GcpKit, on_gcp: Project) -> None:
    with on_machines(kit) as forge:
        live_as_runner(on_gcp, forge, "gcp", f'image = "{_IMAGE}"')
    assert kit.leaks() == []
