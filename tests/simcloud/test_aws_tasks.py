"""Tasks on AWS, with machines: what only AWS does to them; see `vm` for the rest."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sojourn import State
from sojourn.clouds.vm import machine_settings
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import TRUST, allow
from tests.simcloud.vm.aws_side import AwsSide
from tests.simcloud.vm.scripts import SAVING
from tests.simcloud.vm.sides import machine_of, outcomes
from tests.support.waiting import until
from tests.unit.clouds.vm.storing import listed

pytestmark = pytest.mark.slow


def called(kit: AwsKit) -> list[str]:
    return [call.name for call in kit.account.calls]


def deadlines(account: SimAWS) -> dict[str, float]:
    """When groups end by themselves."""
    return {
        group.name: action.start.timestamp()
        for group in account._groups.all()
        for action in group.scheduled.values()
    }


def test_a_role_that_cannot_leave_the_group_ends_the_task_on_the_first_machine(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_RIGHTS_WITHIN", 1.0)
    iam = backends.iam()
    iam.create_role("mine", TRUST, "/", None, "", [], 3600)
    iam.put_role_policy("mine", "store", json.dumps(allow("s3:*")))
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    kit.account.fail("iam:SimulatePrincipalPolicy", code="AccessDenied", status=403)
    handle = lab.create("mkdir output; echo made > output/file", permission_set=profile.arn)
    until(lambda: handle.status().state is State.FAILED)
    action = "autoscaling:RecordLifecycleActionHeartbeat"
    assert f"permission_set is not allowed {action}, so" in handle.status().reason
    assert f"Run `sojourn delete {handle.id}`, grant it" in handle.status().reason
    assert len(kit.account.instances()) == 1
    # It cannot tell that it is ready either: each look at the group takes a while of its patience.
    kit.account.watch(lambda call: kit.account.advance(20 if "Describe" in call.name else 0))
    handle.delete()
    assert lab.output() == {}
    assert kit.leaks() == ["policy mine/store", "profile mine", "role mine"]
    iam.remove_role_from_instance_profile("mine", "mine")
    iam.delete_instance_profile("mine")
    iam.delete_role_policy("mine", "store")
    iam.delete_role("mine")


def test_a_role_that_may_not_write_to_the_store_is_told_though_machines_cannot_tell(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_FAILURES", 2)
    iam = backends.iam()
    iam.create_role("mine", TRUST, "/", None, "", [], 3600)
    policy = json.dumps(allow("autoscaling:*", "s3:GetObject", "s3:ListBucket"))
    iam.put_role_policy("mine", "reading", policy)
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    kit.account.fail("iam:SimulatePrincipalPolicy", code="AccessDenied", status=403)
    handle = lab.create("true", permission_set=profile.arn)
    until(lambda: handle.status().state is State.STOPPED, 60)
    assert "permission_set is not allowed to: docs/aws.md" in handle.status().reason
    assert len(kit.account.instances()) == 1
    handle.delete()
    iam.remove_role_from_instance_profile("mine", "mine")
    iam.delete_instance_profile("mine")
    iam.delete_role_policy("mine", "reading")
    iam.delete_role("mine")


def test_a_list_tells_that_a_script_has_ended_whose_results_cannot_be_stored(
    kit: AwsKit, lab: Lab
) -> None:
    script = "until test -f /dev/shm/go; do sleep 0.05; done; mkdir output; echo x > output/file"
    handle = lab.create(script)
    machine_of(AwsSide(kit), handle)
    iam = backends.iam()
    policy = allow("s3:PutObject", resource=f"arn:aws:s3:::{handle.id}/ranks/*")
    policy["Statement"][0]["Effect"] = "Deny"
    iam.put_role_policy(handle.id, "full", json.dumps(policy))
    kit.appear("go")
    until(lambda: handle.status().state is State.STORING, 60)
    until(lambda: listed() is State.STORING)
    iam.delete_role_policy(handle.id, "full")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"file": "x\n"}


def test_what_takes_longer_to_store_than_a_shutdown_may_take_is_kept(kit: AwsKit, lab: Lab) -> None:
    kit.account.timing.shutdown = 0.5
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    kit.account.delay(0.5)
    handle.stop()
    kit.account.delay(0)
    assert outcomes(handle) == ["preempted"]
    assert log_of(handle)[-1] == "last words"
    handle.delete()
    assert lab.output() == {"attempts": "1\n", "saved": "saved\n"}


def test_a_group_waits_for_as_long_as_a_machine_stores_its_work(
    kit: AwsKit, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_HEARTBEAT", 0.2)
    wait = "until test -f /dev/shm/go; do sleep 0.05; done"
    handle = lab.create(SAVING.replace("trap '", f"trap '{wait}; "))
    until(lambda: log_of(handle) == ["ready"])
    handle.interrupt()
    for _ in range(3):
        kit.account.calls.clear()
        until(lambda: "autoscaling:RecordLifecycleActionHeartbeat" in called(kit))
        kit.account.advance(100)
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_a_machine_is_gone_as_soon_as_it_is_ready_though_the_group_is_late(
    kit: AwsKit, lab: Lab
) -> None:
    kit.account.fail(
        "autoscaling:CompleteLifecycleAction", code="ValidationError", status=400, times=2
    )
    handle = lab.create("true")
    assert handle.wait().status is State.SUCCEEDED
    until(lambda: [each.state for each in kit.account.instances()] == ["terminated"])
    handle.delete()


def test_no_machine_puts_off_the_end_of_its_group_and_then_it_comes(
    kit: AwsKit, lab: Lab, tmp_path: Path
) -> None:
    week, life = 7 * 86400, 600 + 3600
    kit.account.capacity(None, None, False)
    begun = int(time.time())
    handle = lab.create("mkdir -p output; touch output/$SOJOURN_ATTEMPT; sleep 300", timeout=600)
    assert begun <= deadlines(kit.account)[handle.id] - week - life <= time.time()
    kit.account.capacity(None, None, True)
    lab.until_stored(handle, "1", tmp_path / "look")
    first = deadlines(kit.account)[handle.id]
    kit.lose_agent(handle, rank=0)
    until(lambda: handle.status().ranks[0].attempt == 2, 60)
    assert deadlines(kit.account)[handle.id] == first
    # Nobody can reach anything any more, and the time is over.
    kit.account.advance(week + life + 60)
    kit.account.wait(lambda: kit.account.instances()[-1].state == "terminated", 60)
    assert (handle.status().state, handle.machines()) == (State.STOPPED, [])
    assert deadlines(kit.account) == {}
    handle.delete()


def test_the_group_hears_once_of_a_machine_that_is_taken_away_while_it_boots(
    kit: AwsKit, lab: Lab
) -> None:
    handle = lab.create("sleep 300")
    kit.account.wait(lambda: [each.machine for each in kit.account.instances()])
    handle.stop()
    assert [each.state for each in kit.account.instances()] == ["terminated"]
    completed = [each for each in kit.account.calls if "CompleteLifecycle" in each.name]
    assert [each.error for each in completed] == [""]
    handle.delete()
