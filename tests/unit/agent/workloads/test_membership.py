"""A rank in a round of its gang: what it waits for, and what it makes of the end of its script."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TypeVar

import pytest

from sojourn.agent.workloads.gang import Gang
from sojourn.agent.workloads.membership import Membership, Phase
from sojourn.agent.workloads.workload import End
from sojourn.core.context import Context
from sojourn.core.gang import Mpi
from sojourn.core.report import Outcome, Report
from sojourn.core.task import Task
from sojourn.storage.gangs import Member
from tests.support.waiting import patience, until
from tests.unit.agent.workloads.hosts import host_in

_Result = TypeVar("_Result")
TASK = Task("#!/bin/sh\n", gang=True, parallelism=2)
EARLY = {Phase.FAILING, Phase.OVER}


def report(rank: int, outcome: Outcome = Outcome.SUCCEEDED, reason: str = "") -> Report:
    codes = {Outcome.SUCCEEDED: 0, Outcome.FAILED: 3}
    return Report(rank, 1, outcome, reason, codes.get(outcome))


class Ranks:
    """Both ranks of a gang, each on a machine of its own."""

    def __init__(self, folder: Path, task: Task) -> None:
        self._folder = folder
        self._task = task
        self.all = [self.machine(rank) for rank in range(task.parallelism)]

    def machine(self, rank: int) -> Membership:
        return Membership(host_in(self._folder / f"m{rank}", self._task, rank))

    @staticmethod
    def context() -> Context:
        return Context().within(patience(30))

    def each(self, act: Callable[[int, Membership], _Result]) -> list[_Result]:
        with ThreadPoolExecutor(len(self.all)) as pool:
            return list(pool.map(act, range(len(self.all)), self.all))

    def run(self) -> None:
        """Bring all to where their scripts run."""

        def begin(rank: int, member: Membership) -> None:
            assert member.gather(self.context(), describes(rank))
            assert member.be_ready(self.context())

        self.each(begin)
        assert {member.phase for member in self.all} == {Phase.RUNNING}

    def settle(self, *reports: Report) -> list[Report]:
        return self.each(lambda rank, member: member.settle(self.context(), reports[rank]))


def stopped(member: Membership) -> bool:
    member.look()
    return member.phase is not Phase.RUNNING


def describes(rank: int) -> Callable[[], Member]:
    return lambda: Member(rank, 1, f"m{rank}", "127.0.0.1", 1)


@pytest.fixture
def ranks(tmp_path: Path) -> Ranks:
    found = Ranks(tmp_path, TASK)
    found.run()
    return found


@pytest.fixture
def program(tmp_path: Path) -> Ranks:
    """The ranks of an MPI program: rank 0 has the script."""
    found = Ranks(tmp_path, replace(TASK, mpi=Mpi()))
    found.run()
    return found


def phases(ranks: Ranks) -> list[Phase]:
    return [member.phase for member in ranks.all]


def test_all_that_succeed_have_completed_the_round(ranks: Ranks) -> None:
    assert ranks.settle(report(0), report(1)) == [report(0), report(1)]
    assert phases(ranks) == [Phase.COMPLETE] * 2


def test_a_failure_is_that_of_all_when_all_have_stopped(ranks: Ranks) -> None:
    why = "the script ended with exit code 3"
    first, second = ranks.all
    failed = report(0, Outcome.FAILED, why)

    def other(member: Membership) -> Report:
        until(lambda: stopped(member))
        assert (member.phase, member.reason) == (Phase.FAILING, "another rank failed")
        return member.settle(ranks.context(), report(1, Outcome.FAILED, member.reason))

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first.settle, ranks.context(), failed)
        two = pool.submit(other, second)
    assert one.result() == failed
    assert two.result() == report(1, Outcome.FAILED, f"rank 0 failed: {why}")
    assert phases(ranks) == [Phase.OVER] * 2
    assert not any(member.again for member in ranks.all)


def test_a_failure_does_not_count_while_a_machine_is_silent(ranks: Ranks) -> None:
    ranks.all[0]._ttl = 0.5
    settled = ranks.all[0].settle(ranks.context(), report(0, Outcome.FAILED, "no peer"))
    assert settled.outcome is Outcome.PREEMPTED
    assert settled.reason == "the machine of rank 1 was lost; all ranks start again"
    assert ranks.all[0].again


def test_success_counts_though_another_rank_fails(ranks: Ranks) -> None:
    failed = report(1, Outcome.FAILED, "x")
    assert ranks.settle(report(0), failed) == [report(0), failed]
    assert phases(ranks) == [Phase.OVER] * 2


def test_all_start_again_when_a_machine_goes_away(ranks: Ranks) -> None:
    ranks.all[1].leave("spot notice")
    ranks.all[0].look()
    assert phases(ranks) == [Phase.OVER] * 2
    settled = ranks.all[0].settle(ranks.context(), report(0, Outcome.PREEMPTED))
    assert settled.reason == "rank 1: spot notice; all ranks start again"


def test_a_rank_whose_part_was_done_by_another_machine_waits_for_the_rest(ranks: Ranks) -> None:
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(ranks.all[1].settle, ranks.context(), report(1))
        until(lambda: ranks.all[0].look().done)
        new = ranks.machine(1)
        assert new.gather(ranks.context(), describes(1)) is None
        assert new.phase is Phase.INHERITED
        assert ranks.all[0].settle(ranks.context(), report(0)) == report(0)
        assert done.result() == report(1)
    assert new.settle(ranks.context(), report(1, Outcome.FAILED)) == report(1)


def test_the_machines_that_serve_a_program_are_done_when_it_is(program: Ranks) -> None:
    first, second = program.all
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(first.settle, program.context(), report(0))
        until(lambda: stopped(second))
        assert (second.phase, second.reason) == (Phase.DONE, "the program has ended")
        assert second.settle(program.context(), report(1)) == report(1)
        assert done.result() == report(0)


def test_a_server_whose_results_cannot_be_stored_keeps_nobody_waiting(program: Ranks) -> None:
    first, second = program.all
    unstored = report(1, Outcome.FAILED, "could not store the results")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(first.settle, program.context(), report(0))
        until(lambda: stopped(second))
        assert second.settle(program.context(), unstored) == unstored
        assert done.result() == report(0)


def test_a_gang_that_is_never_complete_names_who_is_missing(tmp_path: Path) -> None:
    ranks = Ranks(tmp_path, replace(TASK, gang_timeout=1))
    assert ranks.all[0].gather(ranks.context(), describes(0)) is None
    settled = ranks.all[0].settle(ranks.context(), report(0, Outcome.FAILED))
    assert settled.outcome is Outcome.FAILED
    assert settled.reason == "the gang was not complete after 1s: no machine for rank 1"


@pytest.mark.parametrize(("before", "after"), list(product(Phase, Phase)))
def test_no_phase_follows_but_those_of_the_picture(
    tmp_path: Path, before: Phase, after: Phase
) -> None:
    order = [Phase.OUTSIDE, Phase.GATHERING, Phase.READYING, Phase.RUNNING, Phase.DONE]
    usual = set(zip(order, [*order[1:], Phase.COMPLETE], strict=True))
    usual |= {(Phase.OUTSIDE, Phase.INHERITED), (Phase.INHERITED, Phase.COMPLETE)}
    ended = before in (Phase.COMPLETE, Phase.OVER)
    early = not ended and after in EARLY and (before, after) != (Phase.FAILING, Phase.FAILING)
    member = Ranks(tmp_path, TASK).all[0]
    member.phase = before
    if (before, after) in usual or early:
        member._go(after)
        assert member.phase is after
    else:
        with pytest.raises(RuntimeError, match=f"from {before.name} to {after.name}"):
            member._go(after)


def test_no_script_that_others_end_counts_as_a_success(tmp_path: Path) -> None:
    gang = Gang(host_in(tmp_path / "m0", TASK))
    member = gang._membership
    member.phase = Phase.RUNNING
    assert gang.end() is None
    member.phase, member.reason = Phase.FAILING, "another rank failed"
    assert gang.end() == End(Outcome.FAILED, "another rank failed")
    lost = member._ending("x")
    member._over(lost, "why")
    assert gang.end() == End(Outcome.PREEMPTED, "why")
    assert gang.again
    member.phase = Phase.RUNNING
    member._over(replace(lost, outcome=Outcome.TIMED_OUT, exit_code=7), "why")
    assert gang.end() == End(Outcome.TIMED_OUT, "why", 7)
    assert not gang.again
