"""Tasks on clouds with machines: what the spot market, capacity and time do to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from math import ceil
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.clouds.vm import machine_settings
from tests.contract.clouds.lab import Lab, log_of
from tests.simcloud.vm.scripts import RESUMING, RESUMING_SLOWLY, SAVING
from tests.simcloud.vm.sides import Side, gone, machine_of, outcomes
from tests.support.waiting import patience, until

pytestmark = pytest.mark.slow


def test_a_spot_notice_lets_the_script_save_and_the_next_machine_goes_on(
    side: Side, lab: Lab
) -> None:
    side.account.timing.notice = patience(20)
    handle = lab.create(SAVING, spot=0)
    until(lambda: log_of(handle) == ["ready"])
    lost = machine_of(side, handle)
    side.account.interrupt(lost.id, notice=True)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    assert log_of(handle, attempt=1)[-1] == "last words"
    assert lost.machine
    assert side.notice in lost.machine.console()
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_spot_losses_without_notice_three_in_a_row(side: Side, lab: Lab, tmp_path: Path) -> None:
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
        side.account.interrupt(machine_of(side, handle).id, notice=False)
        until(lambda attempt=attempt: handle.status().ranks[0].attempt > attempt)  # type: ignore[misc]
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "lost", "lost", "succeeded"]
    handle.delete()
    assert lab.output()["count"] == "x\n" * 4


def lose_while_storing(side: Side, handle: Handle) -> None:
    """Take the machine away when some of what it stores is in the store, and others not yet."""

    begin, taken = "ranks/0000/data/000001/objects/", threading.Event()

    def stored() -> bool:
        return sum(path.startswith(begin) for path in side.paths(handle.id)) > 1

    # Nothing more comes through until it is gone, however long that takes.
    side.account.watch(lambda _: stored() and taken.wait(patience(60)))
    side.kit.appear("go")
    until(stored, 60)
    side.account.interrupt(side.account.instances()[-1].id, notice=False)
    taken.set()
    side.account.watch(lambda _: None)


def test_the_cloud_tells_that_a_machine_is_gone_and_no_silence_is_waited_for(
    side: Side, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine_settings, "_TTL", 3600.0)
    handle = lab.create(RESUMING, spot=0)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    side.account.interrupt(machine_of(side, handle).id, notice=False)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_while_it_uploads_leaves_no_half_snapshot(
    side: Side, lab: Lab
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
    lose_while_storing(side, handle)
    assert handle.wait().status is State.SUCCEEDED, log_of(handle)
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete()


def test_a_machine_that_is_lost_during_its_last_snapshot_did_not_succeed(
    side: Side, lab: Lab
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
    lose_while_storing(side, handle)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    handle.delete(fetch=False)


def test_the_spot_market_takes_one_rank_of_three(side: Side, lab: Lab, tmp_path: Path) -> None:
    side.account.timing.notice = patience(20)
    script = """
    mkdir -p output
    echo $SOJOURN_ATTEMPT > output/rank-$SOJOURN_RANK
    test $SOJOURN_RANK != 1 -o $SOJOURN_ATTEMPT != 1 || sleep 300
    until test -f /dev/shm/go; do sleep 0.05; done
    """
    handle = lab.create(script, spot=0, parallelism=3)
    lab.until_stored(handle, "rank-1", tmp_path / "look")
    side.account.interrupt(machine_of(side, handle, 1).id, notice=True)
    until(lambda: handle.status().ranks[1].attempt == 2, 60)
    until(lambda: all(rank.machine for rank in handle.status().ranks))
    side.kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"rank-0": "1\n", "rank-1": "2\n", "rank-2": "1\n"}


def test_a_warning_is_on_the_console_and_ends_nothing(side: Side, lab: Lab) -> None:
    handle = lab.create("until test -f /dev/shm/go; do sleep 0.05; done", spot=0)
    running = machine_of(side, handle).machine
    side.warn(machine_of(side, handle))
    assert running
    until(lambda: side.warning in running.console())
    side.kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["succeeded"]
    handle.delete()


def test_without_capacity_a_task_is_queued_and_says_why_until_there_is_some(
    side: Side, lab: Lab
) -> None:
    side.account.capacity(side.default_type, None, False)
    handle = lab.create("echo here", spot=0)
    until(lambda: "no spot capacity" in handle.status().reason.lower())
    assert handle.status().state is State.QUEUED
    side.account.capacity(side.default_type, None, True)
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

    def __init__(self, side: Side, home: Path) -> None:
        self.home = home
        home.mkdir()
        kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path.cwd() / "src")}
        self._environment = {**kept, **side.account.environment(), "HOME": str(home)}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sojourn.cli", *arguments],
            cwd=self.home,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience(100),
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.parametrize("container", ["", "shared", "shared/some/where=1", "shared/"])
def test_a_task_is_at_hand_from_any_laptop(
    side: Side, lab: Lab, tmp_path: Path, container: str
) -> None:
    if container:
        side.make_bucket("shared")
    storage = sojourn.Storage(workdir=str(lab.workdir), output="output", container=container)
    handle = lab.create("mkdir output; echo made > output/file; echo told", storage=storage)
    other = Laptop(side, tmp_path / "other")
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
        assert side.kit.leaks() == ["bucket shared"]
        side.remove_bucket("shared")


def test_stop_and_start(side: Side, lab: Lab) -> None:
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


def test_a_machine_that_is_taken_away_while_it_boots_goes_as_soon_as_it_can(
    side: Side, lab: Lab
) -> None:
    handle = lab.create("sleep 300")
    side.account.wait(lambda: [each.machine for each in side.account.instances()])
    handle.stop()
    assert all(map(gone, side.account.instances()))
    handle.delete()


def test_a_machine_that_breaks_down_and_starts_again_goes_on(
    side: Side, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It does not wait for its own lease to run out.
    monkeypatch.setattr(machine_settings, "_TTL", 600.0)
    handle = lab.create(RESUMING_SLOWLY)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    instance = machine_of(side, handle)
    side.account.panic(instance.id)
    machine = instance.machine
    assert machine
    timer = ("systemctl", "is-active", "--quiet", "sojourn-end.timer")
    until(lambda: machine.run(*timer, check=False).returncode == 0)
    until(lambda: handle.status().ranks[0].attempt == 2)
    side.kit.appear("go")
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["lost", "succeeded"]
    assert side.account.instances() == [instance]
    until(lambda: gone(instance))
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "checkpoint": "half\n"}


def test_a_machine_that_its_script_reboots_is_left_for_another(side: Side, lab: Lab) -> None:
    script = SAVING.replace("echo ready", "echo ready; systemctl reboot")
    handle = lab.create(script)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    until(lambda: all(map(gone, side.account.instances())))
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_a_machine_that_is_shut_down_stores_its_work_before_the_network_goes(
    side: Side, lab: Lab
) -> None:
    handle = lab.create(SAVING)
    until(lambda: log_of(handle) == ["ready"])
    machine = machine_of(side, handle).machine
    assert machine
    side.account.delay(0.1)
    machine.power_button()
    assert machine.wait(patience(60))
    side.account.delay(0)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == ["preempted", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "saved": "saved\n"}


def test_the_timer_of_a_machine_ends_it(side: Side, lab: Lab) -> None:
    handle = lab.create("echo ready; sleep 300")
    until(lambda: log_of(handle) == ["ready"])
    instance = machine_of(side, handle)
    assert instance.machine
    soon = "[Timer]\nOnBootSec=\nOnBootSec=1\nAccuracySec=1ms\n"
    folder = "/run/systemd/system/sojourn-end.timer.d"
    instance.machine.run("sh", "-c", f"mkdir -p {folder}; cat >{folder}/soon.conf", input=soon)
    instance.machine.run("systemctl", "daemon-reload")
    instance.machine.run("systemctl", "restart", "--no-block", "sojourn-end.timer")
    until(lambda: gone(instance), 60)
    assert "the machine was interrupted" in handle.reports()[0].reason
    handle.delete()


def test_a_timeout_ends_the_machine_and_keeps_its_work(side: Side, lab: Lab) -> None:
    handle = lab.create(
        "mkdir output; echo kept > output/file; sleep 300", timeout=ceil(patience(2))
    )
    assert handle.wait().status is State.TIMED_OUT
    until(lambda: not handle.machines())
    assert all(map(gone, side.account.instances()))
    handle.delete()
    assert lab.output() == {"file": "kept\n"}
