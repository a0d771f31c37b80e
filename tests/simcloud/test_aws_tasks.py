"""Tasks on AWS, with machines: what the spot market, capacity and time do to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.clouds.vm import machine_settings
from tests.contract.clouds.aws_kit import AwsKit
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.fleet import Instance
from tests.simcloud.aws_user import TRUST, allow
from tests.support.waiting import until

pytestmark = pytest.mark.slow

SAVING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/saved && exit 0
trap 'echo last words; echo saved > output/saved; exit 0' TERM
echo ready
while true; do sleep 0.05; done
"""
RESUMING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/checkpoint && exit 0
echo half > output/checkpoint
sleep 300
"""


def machine_of(kit: AwsKit, handle: Handle, rank: int = 0) -> Instance:
    """The instance that carries out a rank."""
    until(lambda: handle.status().ranks[rank].machine)
    wanted = handle.status().ranks[rank].machine
    [found] = [each for each in kit.account.instances() if each.id == wanted]
    return found


def outcomes(handle: Handle) -> list[str]:
    return [report.outcome.value for report in handle.reports()]


def called(kit: AwsKit) -> list[str]:
    return [call.name for call in kit.account.calls]


def deadlines(account: SimAWS) -> dict[str, float]:
    """When groups end by themselves."""
    return {
        group.name: action.start.timestamp()
        for group in account._groups.all()
        for action in group.scheduled.values()
    }


def test_a_spot_notice_lets_the_script_save_and_the_next_machine_goes_on(
    kit: AwsKit, lab: Lab
) -> None:
    kit.account.timing.notice = 20
    handle = lab.create(SAVING, spot=0)
    until(lambda: log_of(handle) == ["ready"])
    lost = machine_of(kit, handle)
    kit.account.interrupt(lost.id, notice=True)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    assert log_of(handle, attempt=1)[-1] == "last words"
    assert lost.machine
    assert "notice: spot interruption" in lost.machine.console()
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_spot_losses_without_notice_three_in_a_row(kit: AwsKit, lab: Lab, tmp_path: Path) -> None:
    script = """
    mkdir -p output
    echo x >> output/count
    test $(wc -l < output/count) -lt 4 || exit 0
    touch output/stored-$SOJOURN_ATTEMPT
    sleep 300
    """
    handle = lab.create(script, spot=0)
    for attempt in (1, 2, 3):
        lab.until_stored(handle, f"stored-{attempt}", tmp_path / "look")
        kit.account.interrupt(machine_of(kit, handle).id, notice=False)
        until(lambda attempt=attempt: handle.status().ranks[0].attempt > attempt)  # type: ignore[misc]
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "lost", "lost", "succeeded"]
    handle.delete()
    assert lab.output()["count"] == "x\n" * 4


def lose_while_storing(kit: AwsKit, handle: Handle) -> None:
    """Take the machine away when some of what it stores is in the store, and others not yet."""

    def stored() -> bool:
        keys = list(backends.s3().buckets[handle.id].keys)
        begin = "ranks/0000/data/000001/objects/"
        return len([key for key in keys if key.startswith(begin)]) > 1

    kit.account.delay(0.5)
    kit.appear("go")
    until(stored, 60)
    kit.account.interrupt(kit.account.instances()[-1].id, notice=False)
    kit.account.delay(0)


def test_the_cloud_tells_that_a_machine_is_gone_and_no_silence_is_waited_for(
    kit: AwsKit, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_TTL", 3600.0)
    handle = lab.create(RESUMING, spot=0)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    kit.account.interrupt(machine_of(kit, handle).id, notice=False)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_while_it_uploads_leaves_no_half_snapshot(
    kit: AwsKit, lab: Lab
) -> None:
    script = """
    mkdir -p output
    if test $SOJOURN_ATTEMPT = 1; then
        mkdir /root/made
        for n in $(seq 30); do head -c 8M /dev/urandom > /root/made/$n; done
        (cd /root/made && sha256sum [0-9]* > sums)
        echo ready
        until test -f /dev/shm/go; do sleep 0.05; done
        mv /root/made output/made
        sleep 300
    fi
    test ! -e output/made || (cd output/made && sha256sum --quiet -c sums) || exit 9
    rm -rf output/made
    """
    handle = lab.create(script, spot=0)
    until(lambda: log_of(handle) == ["ready"], 60)
    lose_while_storing(kit, handle)
    assert handle.wait().status is State.SUCCEEDED, log_of(handle)
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_during_its_last_snapshot_did_not_succeed(
    kit: AwsKit, lab: Lab
) -> None:
    script = """
    mkdir -p output
    if test $SOJOURN_ATTEMPT = 1; then
        head -c 250M /dev/urandom > /root/made
        echo ready
        until test -f /dev/shm/go; do sleep 0.05; done
        mv /root/made output/made
    fi
    rm -f output/attempt-*
    touch output/attempt-$SOJOURN_ATTEMPT
    """
    handle = lab.create(script, spot=0)
    until(lambda: log_of(handle) == ["ready"], 60)
    lose_while_storing(kit, handle)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete(fetch=False)


def test_the_spot_market_takes_one_rank_of_three(kit: AwsKit, lab: Lab, tmp_path: Path) -> None:
    kit.account.timing.notice = 20
    script = """
    mkdir -p output
    echo $SOJOURN_ATTEMPT > output/rank-$SOJOURN_RANK
    test $SOJOURN_RANK != 1 -o $SOJOURN_ATTEMPT != 1 || sleep 300
    until test -f /dev/shm/go; do sleep 0.05; done
    """
    handle = lab.create(script, spot=0, parallelism=3)
    lab.until_stored(handle, "rank-1", tmp_path / "look")
    kit.account.interrupt(machine_of(kit, handle, 1).id, notice=True)
    until(lambda: handle.status().ranks[1].attempt == 2, 60)
    until(lambda: all(rank.machine for rank in handle.status().ranks))
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"rank-0": "1\n", "rank-1": "2\n", "rank-2": "1\n"}


def test_a_recommendation_to_move_is_on_the_console_and_ends_nothing(kit: AwsKit, lab: Lab) -> None:
    handle = lab.create("until test -f /dev/shm/go; do sleep 0.05; done", spot=0)
    running = machine_of(kit, handle).machine
    kit.account.recommend_rebalance(machine_of(kit, handle).id)
    assert running
    until(lambda: "rebalance recommendation" in running.console())
    kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["succeeded"]
    handle.delete()


def test_without_capacity_a_task_is_queued_and_says_why_until_there_is_some(
    kit: AwsKit, lab: Lab
) -> None:
    kit.account.capacity("m5.2xlarge", None, False)
    handle = lab.create("echo here", spot=0)
    until(lambda: "no spot capacity" in handle.status().reason.lower())
    assert handle.status().state is State.QUEUED
    kit.account.capacity("m5.2xlarge", None, True)
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["here"]
    handle.delete()


def test_two_tasks_at_once_do_not_touch_each_other(lab: Lab) -> None:
    script = 'mkdir -p output; echo "$WHICH" > output/$WHICH; echo "$WHICH"'
    handles = [lab.create(script, environment={"WHICH": which}) for which in ("one", "two")]
    assert [handle.wait().status for handle in handles] == [State.SUCCEEDED] * 2
    assert [log_of(handle) for handle in handles] == [["one"], ["two"]]
    handles[0].delete()
    assert lab.output() == {"one": "one\n"}
    assert log_of(handles[1]) == ["two"]
    handles[1].delete()
    assert lab.output() == {"one": "one\n", "two": "two\n"}


class Laptop:
    """Another computer of the same user: the same keys, and nothing else."""

    def __init__(self, kit: AwsKit, home: Path) -> None:
        self.home = home
        home.mkdir()
        kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd() / "src")}
        self._environment = {**kept, **kit.account.environment(), "HOME": str(home)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sojourn.cli", *arguments],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.parametrize("container", ["", "shared", "shared/some/where=1", "shared/"])
def test_a_task_is_at_hand_from_any_laptop(
    kit: AwsKit, lab: Lab, tmp_path: Path, container: str
) -> None:
    if container:
        backends.s3().create_bucket("shared", "eu-north-1")
    storage = sojourn.Storage(workdir=str(lab.workdir), output="output", container=container)
    handle = lab.create("mkdir output; echo made > output/file; echo told", storage=storage)
    other = Laptop(kit, tmp_path / "other")
    listed = other.run("list", "--json").splitlines()
    assert [json.loads(row)["id"] for row in listed] == [handle.id]
    assert "told" in other.run("logs", "--follow", handle.id)
    shown = other.run("status", "--json", handle.id)
    assert json.loads(shown)["state"] == "succeeded"
    assert "PRIVATE KEY" not in shown
    other.run("pull", handle.id, "--into", str(other.home / "pulled"))
    assert (other.home / "pulled/output/file").read_text() == "made\n"
    other.run("delete", handle.id, "--into", str(other.home / "home"))
    assert (other.home / "home/output/file").read_text() == "made\n"
    if container:
        assert kit.leaks() == ["bucket shared"]
        backends.s3().delete_bucket("shared")


def test_a_profile_that_may_not_change_the_group_does_not_hold_up_the_script(
    kit: AwsKit, lab: Lab
) -> None:
    iam = backends.iam()
    iam.create_role("mine", TRUST, "/", None, "", [], 3600)
    iam.put_role_policy("mine", "store", json.dumps(allow("s3:*")))
    profile = iam.create_instance_profile("mine", "/", ["mine"])
    handle = lab.create("mkdir output; echo made > output/file", permission_set=profile.arn)
    until(lambda: handle.status().state is State.SUCCEEDED)
    # It cannot tell that it is ready either: each look at the group takes a while of its patience.
    kit.account.watch(lambda call: kit.account.advance(20 if "Describe" in call.name else 0))
    handle.delete()
    assert lab.output() == {"file": "made\n"}
    assert kit.leaks() == ["policy mine/store", "profile mine", "role mine"]
    iam.remove_role_from_instance_profile("mine", "mine")
    iam.delete_instance_profile("mine")
    iam.delete_role_policy("mine", "store")
    iam.delete_role("mine")


def test_stop_and_start(kit: AwsKit, lab: Lab) -> None:
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    handle.stop()
    assert handle.status().state is State.STOPPED
    assert not handle.machines()
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


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


def test_a_machine_that_is_taken_away_while_it_boots_goes_as_soon_as_it_can(
    kit: AwsKit, lab: Lab
) -> None:
    handle = lab.create("sleep 300")
    kit.account.wait(lambda: [each.machine for each in kit.account.instances()])
    handle.stop()
    assert [each.state for each in kit.account.instances()] == ["terminated"]
    completed = [each for each in kit.account.calls if "CompleteLifecycle" in each.name]
    assert [each.error for each in completed] == [""]
    handle.delete()


def test_a_machine_that_breaks_down_and_starts_again_goes_on(
    kit: AwsKit, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It does not wait for its own lease to run out.
    monkeypatch.setattr(machine_settings, "_TTL", 600.0)
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    instance = machine_of(kit, handle)
    kit.account.panic(instance.id)
    machine = instance.machine
    assert machine
    timer = ("systemctl", "is-active", "--quiet", "sojourn-end.timer")
    until(lambda: machine.run(*timer, check=False).returncode == 0)
    until(lambda: handle.status().ranks[0].attempt == 2)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    assert kit.account.instances() == [instance]
    until(lambda: instance.state == "terminated")
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "checkpoint": "half\n"}


def test_a_machine_that_its_script_reboots_is_left_for_another(kit: AwsKit, lab: Lab) -> None:
    script = SAVING.replace("echo ready", "echo ready; systemctl reboot")
    handle = lab.create(script)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    until(lambda: {each.state for each in kit.account.instances()} == {"terminated"})
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_a_machine_that_is_shut_down_stores_its_work_before_the_network_goes(
    kit: AwsKit, lab: Lab
) -> None:
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    machine = machine_of(kit, handle).machine
    assert machine
    kit.account.delay(0.1)
    machine.power_button()
    assert machine.wait(60)
    kit.account.delay(0)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_the_timer_of_a_machine_ends_it(kit: AwsKit, lab: Lab) -> None:
    handle = lab.create("echo ready; sleep 300")
    until(lambda: log_of(handle) == ["ready"])
    instance = machine_of(kit, handle)
    assert instance.machine
    soon = "[Timer]\nOnBootSec=\nOnBootSec=1\nAccuracySec=1ms\n"
    folder = "/run/systemd/system/sojourn-end.timer.d"
    instance.machine.run("sh", "-c", f"mkdir -p {folder}; cat >{folder}/soon.conf", input=soon)
    instance.machine.run("systemctl", "daemon-reload")
    instance.machine.run("systemctl", "restart", "--no-block", "sojourn-end.timer")
    until(lambda: instance.state == "terminated", 60)
    assert "the machine was interrupted" in handle.reports()[0].reason
    handle.delete()


def test_a_timeout_ends_the_machine_and_keeps_its_work(kit: AwsKit, lab: Lab) -> None:
    handle = lab.create("mkdir output; echo kept > output/file; sleep 300", timeout=2)
    assert handle.wait().status is State.TIMED_OUT
    until(lambda: not handle.machines())
    assert [each.state for each in kit.account.instances()] == ["terminated"]
    handle.delete()
    assert lab.output() == {"file": "kept\n"}


def test_every_machine_puts_off_the_end_of_its_group_and_then_it_comes(
    kit: AwsKit, lab: Lab, tmp_path: Path
) -> None:
    kit.account.capacity(None, None, False)
    handle = lab.create("mkdir -p output; touch output/$SOJOURN_ATTEMPT; sleep 300", timeout=600)
    week, life = 7 * 86400, 600 + 3600
    assert deadlines(kit.account)[handle.id] == pytest.approx(time.time() + week + life, abs=30)
    kit.account.capacity(None, None, True)
    lab.until_stored(handle, "1", tmp_path / "look")
    first = deadlines(kit.account)[handle.id]
    assert first == pytest.approx(time.time() + life, abs=30)
    kit.lose_agent(handle, rank=0)
    until(lambda: handle.status().ranks[0].attempt == 2, 60)
    assert deadlines(kit.account)[handle.id] > first
    # Nobody can reach anything any more, and the time is over.
    kit.account.advance(life + 60)
    kit.account.wait(lambda: kit.account.instances()[-1].state == "terminated", 60)
    assert (handle.status().state, handle.machines()) == (State.STOPPED, [])
    assert deadlines(kit.account) == {}
    handle.delete()
