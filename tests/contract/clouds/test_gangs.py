"""Gangs: all ranks start together, and one that falls takes all along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.storage.gangs import Rounds
from tests.contract.clouds.faults import Faults, failing
from tests.contract.clouds.lab import Lab, answers, log_of
from tests.support.waiting import until

# Counts steps, each of which is marked, and stays at the last one in its first round.
STEPPING = """
mkdir -p output
step=$(cat step 2>/dev/null || echo 0)
echo "from $step"
while [ "$step" -lt 3 ]; do
  step=$((step + 1))
  echo "$step" > step
  "$SOJOURN_MARK" "$step" || exit 9
done
echo "rank $SOJOURN_RANK is at $step"
[ "$SOJOURN_ATTEMPT" -gt 1 ] || sleep 300
echo "$SOJOURN_RANK $step" > "output/rank-$SOJOURN_RANK"
"""
AT_STEP = [f"rank {rank} is at 3" for rank in range(3)]


def gang(lab: Lab, script: str, ranks: int = 3, **more: object) -> Handle:
    return lab.create(script, parallelism=ranks, gang=True, **more)


class _OneTooFew(Faults):
    """A cloud that makes one machine less than it is asked for."""

    def call(self, method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if method.__name__ == "scale":
            ctx, machines = args
            return method(ctx, machines - 1, **more)
        return method(*args, **more)


def one_too_few(lab: Lab, script: str, **more: Any) -> Handle:
    """A gang of three that has two machines; a third one never comes."""
    with failing(_OneTooFew()):
        made = gang(lab, script, **more)
    return sojourn.get(made.id)


def said(handle: Handle, text: str) -> list[str]:
    """All lines of all ranks that have this in them, sorted."""
    return sorted(line for line in log_of(handle) if text in line)


def agreed(lab: Lab, handle: Handle, ranks: int) -> int:
    """The newest mark that all ranks were asked for and have."""
    rounds = Rounds(lab.store(handle))
    marks = rounds.look(rounds.newest()).marks
    newest = [max((m.number for m in marks.get(rank, ())), default=0) for rank in range(ranks)]
    return min(newest)


def outcomes(handle: Handle) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for report in handle.reports():
        found.setdefault(report.rank, []).append(report.outcome.value)
    return found


def test_every_rank_knows_all_others(lab: Lab) -> None:
    script = """
    mkdir -p output
    { sort "$SOJOURN_HOSTS" | uniq | wc -l
      sed -n 1p "$SOJOURN_HOSTS" | grep -cxF "$SOJOURN_MAIN_ADDRESS"
      echo "$SOJOURN_MAIN_ADDRESS:$SOJOURN_MAIN_PORT" | grep -cxF "$MASTER_ADDR:$MASTER_PORT"
      echo "$RANK $NODE_RANK $WORLD_SIZE $JAX_PROCESS_ID $JAX_NUM_PROCESSES"
    } | tr -d ' \\n' > output/$SOJOURN_RANK
    """
    handle = gang(lab, script, ranks=2)
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()
    assert lab.output() == {"0": "21100202", "1": "21111212"}


@pytest.mark.parametrize("notice", [True, False])
def test_one_that_is_lost_takes_all_back_to_the_same_step(lab: Lab, notice: bool) -> None:
    handle = gang(lab, STEPPING)
    until(lambda: said(handle, "is at") == AT_STEP)
    handle.interrupt(rank=1, notice=notice)
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "from") == ["from 0"] * 3 + ["from 3"] * 3
    lost = "preempted" if notice else "lost"
    assert outcomes(handle)[1][0] == lost
    assert {outcome[-1] for outcome in outcomes(handle).values()} == {"succeeded"}
    handle.delete()
    assert lab.output() == {f"rank-{rank}": f"{rank} 3\n" for rank in range(3)}


def test_all_that_are_lost_at_once_come_back_at_the_same_step(lab: Lab) -> None:
    handle = gang(lab, STEPPING, ranks=2)
    until(lambda: said(handle, "is at") == AT_STEP[:2])
    for rank in range(2):
        lab.kit.lose_agent(handle, rank=rank)
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "from") == ["from 0"] * 2 + ["from 3"] * 2
    handle.delete()


def test_ranks_at_different_steps_go_back_to_one_that_all_have_marked(lab: Lab) -> None:
    script = """
    step=$(cat step 2>/dev/null || echo 0)
    echo "from $step"
    [ "$SOJOURN_ATTEMPT" = 1 ] || exit 0
    while [ "$step" -lt $((2 + SOJOURN_RANK * 3)) ]; do
      step=$((step + 1))
      echo "$step" > step
      "$SOJOURN_MARK" "$step"
    done
    echo "is at $step"
    sleep 300
    """
    handle = gang(lab, script, ranks=2)
    until(lambda: said(handle, "is at") == ["is at 2", "is at 5"])
    lab.kit.lose_agent(handle, rank=1)
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "from") == ["from 0", "from 0", "from 2", "from 2"]
    handle.delete()


def test_a_damaged_snapshot_takes_all_to_an_earlier_step(lab: Lab) -> None:
    handle = gang(lab, STEPPING, ranks=2)
    until(lambda: said(handle, "is at") == AT_STEP[:2])
    store = lab.store(handle)
    marks = Rounds(store).marks_of(1, 2)
    store.put(marks[max(marks)], b"damaged")
    lab.kit.lose_agent(handle, rank=0)
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "from") == ["from 0"] * 2 + ["from 2"] * 2
    handle.delete()


def test_without_marks_the_agents_agree_on_one(lab: Lab) -> None:
    script = """
    if [ "$SOJOURN_ATTEMPT" -gt 1 ]; then
      [ -f early ] || { echo "back to the start"; exit 1; }
      exit 0
    fi
    echo x > early
    echo up
    sleep 300
    """
    handle = gang(lab, script, ranks=2)
    until(lambda: said(handle, "up") == ["up", "up"])
    before = agreed(lab, handle, ranks=2)  # the next one may have been asked for already
    until(lambda: agreed(lab, handle, ranks=2) >= before + 2, 60)
    lab.kit.lose_agent(handle, rank=0)
    assert handle.wait().status is State.SUCCEEDED
    handle.delete()


def test_one_that_fails_ends_the_others_and_its_code_counts(lab: Lab) -> None:
    script = """
    trap 'echo "ended $SOJOURN_RANK"; exit 0' TERM
    echo up
    while [ ! -e fail ]; do sleep 0.05; done
    exit 7
    """
    handle = gang(lab, script)
    until(lambda: said(handle, "up") == ["up"] * 3 and answers(handle, 1))
    assert handle.exec("touch fail", rank=1).returncode == 0
    status = handle.wait()
    assert (status.status, status.exit_code) == (State.FAILED, 7)
    assert outcomes(handle) == {rank: ["failed"] for rank in range(3)}
    assert said(handle, "ended") == ["ended 0", "ended 2"]
    assert "rank 1 failed: the script ended with exit code 7" in handle.status().reason
    handle.delete()


def test_a_failure_that_a_loss_brought_about_is_none(lab: Lab) -> None:
    script = """
    echo up
    [ "$SOJOURN_ATTEMPT" = 1 ] || exit 0
    [ "$SOJOURN_RANK" != 0 ] || { while [ ! -e fail ]; do sleep 0.05; done; exit 1; }
    sleep 300
    """
    handle = gang(lab, script, ranks=2)
    until(lambda: said(handle, "up") == ["up", "up"])
    lab.kit.lose_agent(handle, rank=1)
    assert handle.wait().status is State.SUCCEEDED
    assert outcomes(handle) == {0: ["preempted", "succeeded"], 1: ["lost", "succeeded"]}
    handle.delete()


def test_a_rank_that_is_done_starts_again_if_another_is_lost(lab: Lab) -> None:
    script = """
    echo "up $SOJOURN_ATTEMPT"
    [ "$SOJOURN_RANK" != 0 ] || exit 0
    [ "$SOJOURN_ATTEMPT" != 1 ] || sleep 300
    """
    handle = gang(lab, script, ranks=2)
    until(lambda: said(handle, "up") == ["up 1", "up 1"])
    lab.kit.lose_agent(handle, rank=1)
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "up") == ["up 1", "up 1", "up 2", "up 2"]
    handle.delete()


def test_one_that_never_comes(lab: Lab) -> None:
    handle = one_too_few(lab, "echo started", gang_timeout=6)
    status = handle.wait()
    assert status.status is State.FAILED
    assert "the gang was not complete after 6s: no machine for rank" in status.reason
    assert handle.status().counts == {"running": 0, "succeeded": 0, "failed": 3}
    handle.delete()


def test_stop_and_start(lab: Lab) -> None:
    handle = gang(lab, STEPPING, ranks=2)
    until(lambda: said(handle, "is at") == AT_STEP[:2])
    handle.stop()
    until(lambda: handle.status().state is State.STOPPED)
    handle.start()
    assert handle.wait().status is State.SUCCEEDED
    assert said(handle, "from") == ["from 0"] * 2 + ["from 3"] * 2
    handle.delete()


@pytest.mark.parametrize("verb", ["stop", "delete"])
def test_while_it_waits_for_the_others(lab: Lab, verb: str) -> None:
    handle = one_too_few(lab, "echo started; sleep 300")
    until(lambda: "waiting for all machines of the gang" in handle.status().reason)
    if verb == "stop":
        handle.stop()
        until(lambda: handle.status().state is State.STOPPED)
        handle.start()
        until(lambda: said(handle, "started") != [])
    handle.delete()


def test_a_mark_is_a_growing_number(lab: Lab) -> None:
    script = """
    for step in "" x -1 1.5 1234567890123; do
      "$SOJOURN_MARK" "$step" 2>/dev/null; echo $?
    done
    "$SOJOURN_MARK" 007; echo $?
    "$SOJOURN_MARK" 7; echo $?
    "$SOJOURN_MARK" 5; echo $?
    """
    handle = gang(lab, script, ranks=1)
    assert handle.wait().status is State.SUCCEEDED
    assert log_of(handle) == ["2"] * 5 + ["0"] * 3
    handle.delete()
