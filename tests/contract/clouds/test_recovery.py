"""Machines vanish; scripts go on from their last snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn import State
from tests.contract.clouds.lab import Lab, log_of
from tests.support.waiting import until

RESUMING = """
mkdir -p output
echo "$SOJOURN_ATTEMPT" >> output/attempts
test -f output/checkpoint && exit 0
sleep 0.3
echo half > output/checkpoint
sleep 300
"""


def test_an_agent_that_is_killed_is_replaced(lab: Lab, tmp_path: Path) -> None:
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    lab.kit.lose_agent(handle, rank=0)
    assert handle.wait().status is State.SUCCEEDED
    assert [report.outcome.value for report in handle.reports()] == ["lost", "succeeded"]
    handle.delete()
    assert lab.output() == {"attempts": "1\n2\n", "checkpoint": "half\n"}


def test_three_losses_in_a_row(lab: Lab, tmp_path: Path) -> None:
    script = """
    mkdir -p output
    echo x >> output/count
    echo "attempt $SOJOURN_ATTEMPT"
    test $(wc -l < output/count) -lt 4 || exit 0
    touch output/stored-$SOJOURN_ATTEMPT
    sleep 300
    """
    handle = lab.create(script)
    for attempt in (1, 2, 3):
        lab.until_stored(handle, f"stored-{attempt}", tmp_path / "look")
        lab.kit.lose_agent(handle, rank=0)
        until(lambda attempt=attempt: handle.status().ranks[0].attempt > attempt)  # type: ignore[misc]
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == [f"attempt {attempt}" for attempt in (1, 2, 3, 4)]
    handle.delete()
    assert lab.output()["count"] == "x\n" * 4


@pytest.mark.parametrize("notice", [True, False])
def test_an_interruption(lab: Lab, tmp_path: Path, notice: bool) -> None:
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    assert len(handle.interrupt(notice=notice)) == 1
    assert handle.wait().status is State.SUCCEEDED
    outcome = "preempted" if notice else "lost"
    assert [report.outcome.value for report in handle.reports()] == [outcome, "succeeded"]
    handle.delete()


def test_a_notice_lets_the_script_store_its_last_words(lab: Lab) -> None:
    script = """
    mkdir -p output
    test -f output/saved && { cat output/saved; exit 0; }
    trap 'echo saved on notice > output/saved; exit 0' TERM
    echo ready
    while true; do sleep 0.05; done
    """
    handle = lab.create(script)
    until(lambda: log_of(handle) == ["ready"])
    handle.interrupt()
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle, attempt=2) == ["saved on notice"]
    handle.delete()


SLOW_CHILD = """
mkdir -p output
test -f output/checkpoint && exit 0
python3 -c '
import signal, sys, time
def save(*_):
    time.sleep(1)
    with open("output/checkpoint", "w") as file:
        file.write("saved")
    sys.exit()
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(300)
'
echo "the shell lived on"
"""


@pytest.mark.parametrize("verb", ["interrupt", "stop", "delete"])
def test_what_a_shell_started_gets_its_grace_though_the_shell_dies_at_once(
    lab: Lab, verb: str
) -> None:
    handle = lab.create(SLOW_CHILD)
    until(lambda: log_of(handle) == ["ready"])
    if verb == "interrupt":
        handle.interrupt()
        assert handle.wait().status is State.SUCCEEDED
        assert [report.outcome.value for report in handle.reports()] == ["preempted", "succeeded"]
        assert log_of(handle) == ["ready"]
    elif verb == "stop":
        handle.stop()
        handle.pull()
        assert lab.output() == {"checkpoint": "saved"}
    handle.delete()
    assert lab.output() == {"checkpoint": "saved"}


def test_the_loss_of_one_rank_does_not_touch_the_others(lab: Lab, tmp_path: Path) -> None:
    script = """
    mkdir -p output
    echo $SOJOURN_ATTEMPT > output/rank-$SOJOURN_RANK
    test $SOJOURN_RANK != 1 -o $SOJOURN_ATTEMPT != 1 || sleep 300
    until test -f /dev/shm/$GO; do sleep 0.05; done
    """
    go = f"sojourn-{tmp_path.name}-{id(lab)}"
    handle = lab.create(script, parallelism=3, environment={"GO": go})
    for rank in range(3):  # a machine that is late would take what was lost
        lab.until_stored(handle, f"rank-{rank}", tmp_path / "look")
    lab.kit.lose_agent(handle, rank=1)
    until(lambda: handle.status().ranks[1].attempt == 2)
    lab.kit.appear(go)
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"rank-0": "1\n", "rank-1": "2\n", "rank-2": "1\n"}


def test_a_scaler_that_is_killed_is_replaced_by_the_next_command(lab: Lab, tmp_path: Path) -> None:
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    if not lab.kit.lose_scaler(handle):
        handle.delete()
        pytest.skip("the scaler of this cloud cannot die")
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output()["attempts"] == "1\n2\n"


def test_losing_everything_at_once(lab: Lab, tmp_path: Path) -> None:
    handle = lab.create(RESUMING)
    lab.until_stored(handle, "checkpoint", tmp_path / "look")
    lab.kit.lose_scaler(handle)
    lab.kit.lose_agent(handle, rank=0)
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_a_full_disk_on_the_machine_fails_the_script_and_not_the_cloud(lab: Lab) -> None:
    if lab.kit.machine_disk(16 << 20) is None:
        pytest.skip("needs root, to mount a small disk: run the tests as root")
    script = """
    mkdir output
    echo kept > output/kept
    head -c 100M /dev/zero > output/too-large || { rm output/too-large; exit 5; }
    """
    result = lab.run(script)
    assert (result.status, result.exit_code) == (State.FAILED, 5)
    assert lab.output() == {"kept": "kept\n"}


def test_a_workdir_too_large_for_the_machine_is_told(lab: Lab) -> None:
    if lab.kit.machine_disk(4 << 20) is None:
        pytest.skip("needs root, to mount a small disk: run the tests as root")
    (lab.workdir / "large").write_bytes(bytes(range(256)) * (8 << 12))
    result = lab.run("true")
    assert result.status is State.FAILED
    assert "No space left" in result.reason
