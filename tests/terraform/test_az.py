"""The whole life of a task on Azure, led by Terraform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.clouds import az_kit
from tests.contract.clouds.az_kit import AzureKit
from tests.contract.clouds.kit import in_use
from tests.simcloud.az_user import User
from tests.terraform.machine_life import live_as_machine
from tests.terraform.project import Project
from tests.terraform.runner_life import live_as_runner, on_machines
from tests.terraform.whole_life import give_account, live, task_on

pytestmark = pytest.mark.slow

_IMAGE = "ubuntu@Canonical:ubuntu-24_04-lts:server:latest"
_TASK = task_on("az", _IMAGE)
_PROXY = ("AZURE_", "HTTPS_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")


@pytest.fixture
def kit(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AzureKit]:
    with in_use(az_kit.make(tmp_path_factory), monkeypatch) as kit:
        yield kit


@pytest.fixture
def on_azure(kit: AzureKit, project: Project) -> Project:
    return give_account(project, kit, *_PROXY)


def test_whole_life(kit: AzureKit, on_azure: Project) -> None:
    def check(task: dict[str, Any], public: str) -> None:
        user = User(kit.environment())
        kind = "Microsoft.Compute/virtualMachineScaleSets"
        found = user.get(f"resourceGroups/{task['id']}/providers/{kind}/{task['id']}")
        user.close()
        machine = found["properties"]["virtualMachineProfile"]
        assert machine["priority"] == "Spot"
        linux = machine["osProfile"]["linuxConfiguration"]
        assert linux["ssh"]["publicKeys"][0]["keyData"].startswith(public)

    live(kit, on_azure, _TASK, check=check)


def test_what_azure_refuses_is_told_by_the_plan(kit: AzureKit, on_azure: Project) -> None:
    on_azure.write(_TASK.replace('machine     = "m"', 'machine     = "m+k80"'))
    on_azure.init()
    assert "retired K80s: use m+t4" in on_azure.plan(code=1).said
    on_azure.write(_TASK.replace('region      = "us-west"', 'region      = "moonbase"'))
    assert "region: unknown region 'moonbase'" in on_azure.plan(code=1).said
    assert kit.leaks() == []


@pytest.mark.parametrize("cloud", ["azure", pytest.param("az", marks=pytest.mark.full)])
def test_a_machine(kit: AzureKit, on_azure: Project, cloud: str) -> None:
    live_as_machine(kit, on_azure, cloud, _IMAGE)


@pytest.mark.full
def test_a_runner(kit: AzureKit, on_azure: Project) -> None:
    with on_machines(kit) as forge:
        live_as_runner(on_azure, forge, "azure", f'image = "{_IMAGE}"')
    assert kit.leaks() == []
