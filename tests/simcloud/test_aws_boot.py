"""Machines of AWS that cannot even start the agent; see `vm` for the rest."""

from __future__ import annotations

import pytest

from sojourn import State
from sojourn.clouds.vm import first_script, machine_settings
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import Lab
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
