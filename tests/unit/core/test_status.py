from __future__ import annotations

from dataclasses import replace

import pytest

from sojourn.core.activity import Activity, Doing
from sojourn.core.report import Outcome, Report
from sojourn.core.status import RankRecord, RankStatus, State, rank_status, task_status


def report(outcome: Outcome, exit_code: int | None = None, rank: int = 0) -> Report:
    return Report(rank, 1, outcome, f"it {outcome}", exit_code)


def record(
    outcome: Outcome | None = None, *, attempt: int = 1, rank: int = 0, exit_code: int | None = None
) -> RankRecord:
    told = report(outcome, exit_code, rank) if outcome else None
    return RankRecord(rank, attempt, "vm-1" if attempt else "", told)


NEW = record(attempt=0)
BUSY = record()
GONE = record(Outcome.PREEMPTED)
LOST = record(Outcome.LOST)
DONE = record(Outcome.SUCCEEDED, exit_code=0)
FULL = replace(BUSY, activity=Activity(Doing.FILES_FULL))
STORING = replace(BUSY, activity=Activity.after(Doing.ENDED_FULL, 0))
BAD = record(Outcome.FAILED, exit_code=3)
LATE = record(Outcome.TIMED_OUT, exit_code=-9)

ALIVE = ["vm-1", "vm-2"]
STOPPED = "run `sojourn start` to resume it"


@pytest.mark.parametrize(
    ("known", "wanted", "alive", "state", "reason"),
    [
        (NEW, 1, 0, State.QUEUED, "waiting for a machine"),
        (NEW, 1, 1, State.PROVISIONING, "the machine is starting"),
        (NEW, 0, 0, State.STOPPED, STOPPED),
        (NEW, 0, 1, State.STOPPED, STOPPED),
        (BUSY, 1, 1, State.RUNNING, ""),
        (FULL, 1, 1, State.RUNNING, "cannot store snapshots: no space left in the store"),
        (
            STORING,
            1,
            1,
            State.STORING,
            "the script has ended with exit code 0, but its results are not stored yet: no space "
            "left in the store; make room, or run `sojourn pull` to download what is stored",
        ),
        (STORING, 1, 0, State.RECOVERING, "the machine was lost; waiting for a new machine"),
        (BUSY, 1, 0, State.RECOVERING, "the machine was lost; waiting for a new machine"),
        (BUSY, 0, 0, State.STOPPED, STOPPED),
        (GONE, 1, 0, State.RECOVERING, "it preempted; waiting for a new machine"),
        (GONE, 1, 1, State.RECOVERING, "it preempted; waiting for a new machine"),
        (GONE, 0, 0, State.STOPPED, STOPPED),
        (LOST, 1, 1, State.RECOVERING, "it lost; waiting for a new machine"),
        (LOST, 0, 1, State.STOPPED, STOPPED),
        (DONE, 1, 1, State.SUCCEEDED, "it succeeded"),
        (DONE, 0, 0, State.SUCCEEDED, "it succeeded"),
        (BAD, 1, 0, State.FAILED, "it failed"),
        (BAD, 0, 0, State.FAILED, "it failed"),
        (LATE, 1, 1, State.TIMED_OUT, "it timed-out"),
        (LATE, 0, 0, State.TIMED_OUT, "it timed-out"),
    ],
)
def test_rank(known: RankRecord, wanted: int, alive: int, state: State, reason: str) -> None:
    exit_code = known.report.exit_code if known.report and known.report.outcome.final else None
    exit_code = 0 if state is State.STORING else exit_code
    activity = known.activity if state in (State.RUNNING, State.STORING) else None
    expected = RankStatus(0, state, known.attempt, exit_code, reason, known.machine, activity)
    assert rank_status(known, wanted=wanted, alive=ALIVE[:alive]) == expected
    status = task_status([known], wanted=wanted, alive=ALIVE[:alive])
    assert (status.state, status.reason, status.exit_code) == (state, reason, exit_code)
    assert status.ranks == (expected,)


@pytest.mark.parametrize(
    ("started", "ended", "times"),
    [("2", "3", ("2", "3")), ("", "3", ("1", "3")), ("2", "", ("", ""))],
    ids=["reported", "lost", "end unknown"],
)
def test_a_task_that_was_stopped_ran_as_long_as_its_last_attempt(
    started: str, ended: str, times: tuple[str, str]
) -> None:
    told = replace(report(Outcome.PREEMPTED), started=started, ended=ended)
    rank = rank_status(replace(GONE, report=told, began="1"), wanted=0, alive=())
    assert (rank.began, rank.ended) == times
    rank = rank_status(replace(BUSY, began="1"), wanted=0, alive=())
    assert (rank.began, rank.ended) == ("", "")


def test_a_machine_that_came_for_another_rank_does_not_count() -> None:
    assert rank_status(BUSY, wanted=1, alive=["vm-2"]).state is State.RECOVERING


def test_the_table_has_every_state() -> None:
    [mark] = test_rank.pytestmark  # type: ignore[attr-defined]
    assert {row[3] for row in mark.args[1]} == set(State)


@pytest.mark.parametrize(
    ("first", "second", "wanted", "alive", "state", "reason"),
    [
        (record(rank=0), NEW, 2, 1, State.RUNNING, ""),
        (DONE, record(rank=1), 2, 1, State.RUNNING, ""),
        (BAD, record(rank=1), 2, 1, State.RUNNING, ""),
        (
            DONE,
            record(Outcome.PREEMPTED, rank=1),
            2,
            0,
            State.RECOVERING,
            "rank 1: it preempted; waiting for a new machine",
        ),
        (DONE, record(attempt=0, rank=1), 2, 0, State.QUEUED, "rank 1: waiting for a machine"),
        (
            DONE,
            record(attempt=0, rank=1),
            2,
            1,
            State.PROVISIONING,
            "rank 1: the machine is starting",
        ),
        (GONE, record(attempt=0, rank=1), 2, 1, State.RECOVERING, "rank 0: it preempted"),
        (DONE, record(rank=1), 0, 0, State.STOPPED, "rank 1: run `sojourn start`"),
        (BAD, record(rank=1), 0, 0, State.STOPPED, "rank 1: run `sojourn start`"),
        (DONE, record(Outcome.FAILED, rank=1), 0, 0, State.FAILED, "rank 1: it failed"),
        (LATE, record(Outcome.FAILED, rank=1), 0, 0, State.FAILED, "rank 1: it failed"),
        (LATE, record(Outcome.SUCCEEDED, rank=1), 0, 0, State.TIMED_OUT, "rank 0: it timed-out"),
        (DONE, record(Outcome.SUCCEEDED, rank=1), 0, 0, State.SUCCEEDED, "rank 0: it succeeded"),
    ],
)
def test_task_of_two(
    first: RankRecord, second: RankRecord, wanted: int, alive: int, state: State, reason: str
) -> None:
    status = task_status([first, second], wanted=wanted, alive=ALIVE[:alive])
    assert status.state == state
    assert status.reason.startswith(reason)
    assert bool(status.reason) is bool(reason)
    assert len(status.ranks) == 2


def test_the_exit_code_is_that_of_the_rank_that_went_worst() -> None:
    records = [DONE, record(Outcome.FAILED, rank=1, exit_code=7), record(Outcome.SUCCEEDED, rank=2)]
    assert task_status(records, wanted=0, alive=ALIVE[:0]).exit_code == 7


def test_counts() -> None:
    ended = [DONE, BAD, LATE, record(Outcome.SUCCEEDED, rank=3)]
    assert task_status(ended, wanted=0, alive=ALIVE[:0]).counts == {
        "running": 0,
        "succeeded": 2,
        "failed": 2,
    }
    assert task_status([BUSY, NEW, DONE], wanted=2, alive=ALIVE[:2]).counts == {
        "running": 1,
        "succeeded": 1,
        "failed": 0,
    }
    assert task_status([BUSY, GONE], wanted=0, alive=ALIVE[:0]).counts == {
        "running": 0,
        "succeeded": 0,
        "failed": 0,
    }


@pytest.mark.parametrize(
    ("state", "text", "ended"),
    [
        (State.QUEUED, "queued", False),
        (State.PROVISIONING, "provisioning", False),
        (State.RUNNING, "running", False),
        (State.RECOVERING, "recovering", False),
        (State.SUCCEEDED, "succeeded", True),
        (State.FAILED, "failed", True),
        (State.TIMED_OUT, "timed-out", True),
        (State.STOPPED, "stopped", True),
    ],
)
def test_states(state: State, text: str, ended: bool) -> None:
    assert (str(state), f"{state}", state.ended) == (text, text, ended)


@pytest.mark.parametrize(
    ("known", "ended"), [(NEW, False), (BUSY, False), (GONE, False), (LOST, False), (DONE, True)]
)
def test_records_end_with_their_script(known: RankRecord, ended: bool) -> None:
    assert known.ended is ended
