"""Machines of AWS that cannot even start the agent; see `vm` for the rest."""

from __future__ import annotations

import pytest

from sojourn import State
from sojourn.clouds.vm import first_script, machine_settings
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import Lab
from tests.simcloud.aws import backends
from tests.simcloud.aws_user import TRUST
from tests.support.waiting import until

pytestmark = pytest.mark.slow


def test_a_machine_that_never_gets_keys_goes_and_is_replaced(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 1.0)
    monkeypatch.setattr(
        first_script, "_SCRIPT", first_script._SCRIPT.replace(" in 0 30 60;", " in 0 1;")
    )
    kit.account.timing.keys_ready = 3600.0
    handle = lab.create("echo here")
    kit.account.wait(lambda: kit.account.instances()[:1], 30)
    first = kit.account.instances()[0]
    kit.account.wait(lambda: first.state == "terminated", 60)
    assert first.record.state_reason.code == "Client.InstanceInitiatedShutdown"
    kit.account.timing.keys_ready = 0.0
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_a_machine_without_rights_of_the_users_stays_and_is_not_replaced(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_BOOT_WITHIN", 1.0)
    monkeypatch.setattr(
        first_script, "_SCRIPT", first_script._SCRIPT.replace(" in 0 30 60;", " in 0 1;")
    )
    iam = backends.iam()
    iam.create_role("mine", TRUST, "/", None, "", [], 3600)
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    kit.account.fail("iam:SimulatePrincipalPolicy", code="AccessDenied", status=403)
    handle = lab.create("echo here", permission_set=profile.arn)
    kit.account.wait(lambda: any(each.machine for each in kit.account.instances()), 60)
    [instance] = kit.account.instances()
    machine = instance.machine
    assert machine
    until(lambda: "permission_set lets no machine leave" in machine.console(), 60)
    assert [each.state for each in kit.account.instances()] == ["running"]
    handle.delete()
    iam.remove_role_from_instance_profile("mine", "mine")
    iam.delete_instance_profile("mine")
    iam.delete_role("mine")


def test_an_agent_that_fails_again_and_again_ends_its_group_and_never_puts_that_off(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_FAILURES", 2)
    denied = {"code": "AccessDenied", "status": 403}
    kit.account.fail("s3:ListObjectsV2", who="*assumed-role*", times=99, **denied)  # type: ignore[arg-type]
    handle = lab.create("true")
    until(lambda: handle.status().state is State.STOPPED, 60)
    calls = [call for call in kit.account.calls if ":assumed-role/" in call.who]
    assert "TerminateInstanceInAutoScalingGroup" in {call.operation for call in calls}
    assert "PutScheduledUpdateGroupAction" not in {call.operation for call in calls}
    kit.account.heal()
    handle.delete()
