"""What tests leave in a project is found and removed by its mark, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.clouds.gcp_real_kit import RealGcpKit
from tests.simcloud.gcp.account import SimGCP
from tests.simcloud.gcp.project import PROJECT
from tests.simcloud.gcp_user import User
from tests.unit.clouds.vm import sweeps

pytestmark = pytest.mark.slow  # it waits until things are gone

KINDS = {
    *("binding", "bucket", "disk", "firewall rule", "group", "machine", "service account"),
    "template",
}
CODE = """
from sojourn import Task
from sojourn.clouds.gcp import machine_types, tags

task = Task("#!/bin/sh")
print(tags.labels_of("id", task)["sojourn-test"], machine_types.machine_type("m"))
"""


@pytest.fixture
def kit(project: SimGCP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RealGcpKit:
    """The kit for a real project, on one that is not."""
    made = RealGcpKit(tmp_path)
    for name, value in made.environment().items():
        monkeypatch.setenv(name, value)
    return made


def test_all_that_a_task_leaves_is_found(project: SimGCP, kit: RealGcpKit) -> None:
    sweeps.all_that_a_task_leaves_is_found(project, kit, KINDS)


def test_the_sweep_removes_all_of_it(project: SimGCP, kit: RealGcpKit) -> None:
    sweeps.all_of_it_is_removed(project, kit)


def test_bindings_of_accounts_that_are_gone_are_removed(
    project: SimGCP, kit: RealGcpKit, user: User
) -> None:
    sweeps.create(kit, "a")
    path = f"v1/projects/{PROJECT}/serviceAccounts"
    for account in user.call("GET", "iam", path)["accounts"]:
        if account["email"].startswith("tpi-"):
            user.remove_account(account["email"])
    kit.close()
    assert project.inventory() == []


def test_the_sweep_removes_images(project: SimGCP, kit: RealGcpKit) -> None:
    sweeps.an_image_is_removed(project, kit)


def test_what_has_no_mark_or_another_stays(
    project: SimGCP, kit: RealGcpKit, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    user.make_bucket("tpi-bucket", labels={"sojourn-testing": kit.mark})
    user.store("tpi-bucket").put("file", b"")
    email = user.make_account("tpi-sojourn-test")
    user.bind("roles/compute.viewer", f"serviceAccount:{email}", "resource.name == 'sojourn-test'")
    rule = {"network": "global/networks/default", "allowed": [{"IPProtocol": "tcp"}]}
    for number, text in enumerate(("sojourn-test", '["sojourn-test"]', '{"sojourn-test": ""}')):
        user.post("global/firewalls", {**rule, "name": f"tpi-rule-{number}", "description": text})
    user.make_template(name="a-template", labels={"sojourn-tests": kit.mark})
    user.make_group(1, "tpi-group", baseInstanceName="tpi-group")
    sweeps.what_has_no_mark_or_another_stays(project, kit, monkeypatch)


def test_without_yes_nothing_is_removed(
    kit: RealGcpKit, capsys: pytest.CaptureFixture[str]
) -> None:
    sweeps.nothing_is_removed_without_yes(kit, capsys)


def test_processes_that_tests_start_mark_what_they_make_as_well(kit: RealGcpKit) -> None:
    sweeps.processes_mark_as_well(kit, CODE, "g1-small")


def test_a_lost_agent_is_a_machine_whose_power_was_cut(project: SimGCP, kit: RealGcpKit) -> None:
    sweeps.a_lost_machine_is_gone(project, kit)
