"""One rank in one round of its gang, as a state machine.

    OUTSIDE -> GATHERING -> READYING -> RUNNING -> DONE -> COMPLETE
       |           |           |           |        |
       +-----------+-----------+-----------+--------+---> FAILING ---> OVER

A rank waits until all others have joined, then until all have restored their files, then runs its
script. FAILING: the script of a rank failed, so all stop theirs and find out whether that failure
counts. OVER, which every phase but COMPLETE can lead to: the round ended early, as `ending` tells.
Either the gang has failed, or all ranks start again in another round.
"""

from __future__ import annotations

import time
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from sojourn.agent.background import say
from sojourn.agent.workloads.peers import Peers
from sojourn.core.activity import Activity, Doing
from sojourn.core.durations import format_seconds
from sojourn.core.errors import NotFound, Transient
from sojourn.core.report import Outcome, Report
from sojourn.storage.gangs import ASKED, Ending, Mark, Member, Rounds, common_mark

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.agent.workloads.workload import Host
    from sojourn.core.context import Context
    from sojourn.storage.gangs import Round

__all__ = ["Membership", "Phase"]

_FRUITLESS = 10  # rounds in a row that were lost at the same mark: the script may crash machines
_SOON = 0.05  # seconds between the first looks at a round
_TICK = 0.2  # seconds between looks while a gang fails
_LOOK_LESS = 0.02  # seconds for each rank: all of them look at what all of them wrote


class Phase(Enum):
    """Where a rank is in its round."""

    OUTSIDE = "it has not joined"
    GATHERING = "it waits until all ranks are there"
    READYING = "it waits until all ranks have restored their files"
    RUNNING = "its script runs"
    DONE = "its part is done; others still run"
    INHERITED = "its part was done by another machine, which was lost then"
    COMPLETE = "all ranks are done"
    FAILING = "the script of a rank failed: all stop"
    OVER = "the round ended early"


_EARLY = {Phase.FAILING, Phase.OVER}
_NEXT = {
    Phase.OUTSIDE: {Phase.GATHERING, Phase.INHERITED} | _EARLY,
    Phase.GATHERING: {Phase.READYING} | _EARLY,
    Phase.READYING: {Phase.RUNNING} | _EARLY,
    Phase.RUNNING: {Phase.DONE} | _EARLY,
    Phase.DONE: {Phase.COMPLETE} | _EARLY,
    Phase.INHERITED: {Phase.COMPLETE} | _EARLY,
    Phase.FAILING: {Phase.OVER},
    Phase.COMPLETE: set[Phase](),
    Phase.OVER: set[Phase](),
}


class Membership:
    """What a rank knows of its round, and does in it.

    `phase` is written by one thread at a time: that of the attempt, and while the script runs,
    the one that calls `look`. `reason`: why the script is to end, if the others are the reason.
    """

    def __init__(self, host: Host) -> None:
        self._rounds = Rounds(host.store)
        self._task = host.task
        self._ranks = host.task.parallelism
        self._rank = host.lease.rank
        self._leases = host.leases
        self._telling = host.telling
        self._ttl = host.config.ttl
        self._peers = Peers(host.store, self._rounds, self._rank, self._ttl)
        self._fruitless = 0
        self._began = ""
        self.look_every = max(host.config.look, self._ranks * _LOOK_LESS)
        self.phase = Phase.OUTSIDE
        self.number = 0
        self.members: list[Member] = []
        self.ending: Ending | None = None
        self.reason = ""

    @property
    def again(self) -> bool:
        """Whether all ranks start again, in another round."""
        return self.ending is not None and not self.ending.outcome.final

    # Before the script starts.

    def gather(self, ctx: Context, describe: Callable[[], Member]) -> Mark | None:
        """Join, and wait until all ranks are there. Gives the mark that all begin at.

        None: the round is over for this rank, so its script is not to run.
        """
        give_up = time.monotonic() + self._task.gang_timeout
        before = self._join(describe)
        if self.phase is not Phase.GATHERING or not self._await(
            ctx, lambda seen: len(seen.members), give_up
        ):
            return None
        self.members = [self._rounds.member(self.number, rank) for rank in range(self._ranks)]
        mark = common_mark(self.members) or Mark(ASKED, 0)
        self._began = mark.name
        if before and before.began in ("", self._began) and not before.expected:
            self._fruitless = before.fruitless + bool(before.began)
        if self._fruitless >= _FRUITLESS:
            why = f"a machine was lost {_FRUITLESS} times in a row at the same step"
            why = f"{why}; the script may be crashing it"
            self._end(replace(self._ending(why), outcome=Outcome.FAILED))
            return None
        self._go(Phase.READYING)
        return mark

    def _join(self, describe: Callable[[], Member]) -> Ending | None:
        """Join the newest round that has not ended; a new one, if there is none.

        A round in which this rank was with another machine has lost that one. Gives how the round
        before this one ended.
        """
        number = max(1, self._rounds.newest())
        before = None
        while self.phase is Phase.OUTSIDE:
            self.number = number
            seen = self._rounds.look(number)
            if seen.over:
                before = self._rounds.ending(number)
                if before.outcome.final:
                    self._over(before)
                number += 1
            elif self._rank in seen.done and not seen.failing:
                self._go(Phase.INHERITED)
            elif self._rank in seen.members:
                self._rounds.end(number, self._of_lost(seen))
            elif self._rounds.join(number, self._with_marks(describe())):
                self._go(Phase.GATHERING)
        return before

    def _with_marks(self, member: Member) -> Member:
        return replace(member, marks=self._rounds.marks_of(self._rank, self._ranks))

    def _of_lost(self, seen: Round) -> Ending:
        """How a round ends whose member of this very rank is gone."""
        told = Ending(Outcome.LOST, self._rank, f"the machine of rank {self._rank} was lost")
        if self._rank not in seen.ready:
            return told
        known = self._rounds.readiness(self.number, self._rank)
        return replace(told, began=known.began, fruitless=known.fruitless)

    def cannot_begin(self, why: str) -> None:
        """End the round: this rank cannot restore the common mark, and all look for another."""
        self._end(replace(self._ending(why), expected=True))

    def be_ready(self, ctx: Context) -> bool:
        """Wait until all are, too. False: the round is over, so the script is not to run."""
        self._rounds.be_ready(self.number, self._rank, self._ending(""))
        if not self._await(ctx, lambda seen: len(seen.ready)):
            return False
        self._telling.gathering = None
        self._go(Phase.RUNNING)
        return True

    def _await(
        self, ctx: Context, count: Callable[[Round], int], give_up: float = float("inf")
    ) -> bool:
        """Wait until this is so for all ranks. False: the round ended meanwhile."""
        pause = _SOON
        while True:
            seen = self._look()
            if seen is not None:
                self._telling.gathering = Activity(Doing.GATHERING, count(seen), self._ranks)
                if self._ended_early(ctx, seen):
                    return False
                if count(seen) >= self._ranks:
                    return True
                if self._lost_peer(seen):
                    return False
                if time.monotonic() > give_up:
                    self._give_up(seen)
                    return False
            ctx.sleep(pause)
            pause = min(pause * 1.25, self.look_every)

    def _give_up(self, seen: Round) -> None:
        """The others never came: no machine is to wait for them, and what is missing is told."""
        missing = [rank for rank in range(self._ranks) if rank not in seen.members]
        some = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        limit = format_seconds(self._task.gang_timeout)
        noun = "rank" if len(missing) == 1 else "ranks"
        why = f"the gang was not complete after {limit}: no machine for {noun} {some}"
        self._end(Ending(Outcome.FAILED, missing[0], why))
        ending = self.ending
        if ending and ending.outcome.final:  # another one may have just ended it otherwise
            for rank in missing:
                self._leases.give_up(rank, ending.outcome, ending.reason)

    # While it runs.

    def look(self) -> Round:
        """Look at the round while the script runs: the phase tells whether it can go on."""
        seen = self._rounds.look(self.number)
        if seen.over:
            self._over(self._rounds.ending(self.number), "the gang has ended")
        elif seen.failing:
            self.reason = "another rank failed"
            self._go(Phase.FAILING)
        elif self._task.mpi and self._rank > 0 and 0 in seen.done:
            self.reason = "the program has ended"
            self._go(Phase.DONE)
        else:
            self._lost_peer(seen)
        return seen

    # After it has ended.

    def settle(self, ctx: Context, report: Report) -> Report:
        """What the end of this rank means, given all others: waits for them."""
        if self.phase not in _EARLY:
            report = self._tell(report)
        done = self.phase in (Phase.DONE, Phase.INHERITED)
        pause = _SOON
        while self.phase is not Phase.OVER:
            seen = self._look()
            if seen is not None and not self._ended_early(ctx, seen):
                if len(seen.done) >= self._ranks:
                    self._go(Phase.COMPLETE)
                    return report
                if self._lost_peer(seen):
                    break
            ctx.sleep(pause)
            pause = min(pause * 1.25, self.look_every)
        assert self.ending is not None  # noqa: S101 -- it is set before the phase
        return self._after(self.ending, report, done=done)

    def _tell(self, report: Report) -> Report:
        """Tell the others how the script of this rank ended."""
        if self.phase is Phase.INHERITED:
            return replace(report, outcome=Outcome.SUCCEEDED, reason="", exit_code=0)
        if report.outcome is Outcome.SUCCEEDED:
            if self.phase is not Phase.DONE:
                self._go(Phase.DONE)
            self._rounds.say(self.number, "done", self._rank)
        else:
            why = Ending(report.outcome, self._rank, report.reason, report.exit_code)
            self._rounds.fail(self.number, why)
        return report

    def leave(self, reason: str) -> None:
        """This machine goes away: all others have to start again."""
        if self.number and self.phase is not Phase.OVER:
            why = f"rank {self._rank}: {reason}"
            self._end(replace(self._ending(why), outcome=Outcome.PREEMPTED, expected=True))

    def _after(self, ending: Ending, report: Report, *, done: bool) -> Report:
        """The report of this rank, after its round ended early. `done`: its own part was."""
        if self.again:
            why = f"{ending.reason}; all ranks start again"
            return replace(report, outcome=Outcome.PREEMPTED, exit_code=None, reason=why)
        if done or (ending.rank == self._rank and report.reason):
            return report
        failed = (
            f"rank {ending.rank} failed: {ending.reason}" if ending.exit_code else ending.reason
        )
        return replace(report, outcome=ending.outcome, exit_code=ending.exit_code, reason=failed)

    # What all phases need.

    def _ended_early(self, ctx: Context, seen: Round) -> bool:
        if seen.over:
            self._over(self._rounds.ending(self.number))
        elif seen.failing:
            self._await_verdict(ctx)
        return self.phase is Phase.OVER

    def _await_verdict(self, ctx: Context) -> None:
        """A script failed: because it failed, or because it missed one whose machine is gone?

        Who is still there says so. If all do, the failure counts.
        """
        if self.phase is not Phase.FAILING:
            self._go(Phase.FAILING)
        self._rounds.say(self.number, "stopped", self._rank)
        give_up = time.monotonic() + self._ttl
        while True:
            seen = self._look()
            if seen is not None:
                if seen.over:
                    return self._over(self._rounds.ending(self.number))
                if len(seen.stopped) >= self._ranks:
                    return self._end(self._rounds.failure(self.number))
                silent = [rank for rank in range(self._ranks) if rank not in seen.stopped]
                if time.monotonic() > give_up:
                    return self._end(self._ending(f"the machine of rank {silent[0]} was lost"))
            ctx.sleep(min(_TICK, self.look_every))

    def _lost_peer(self, seen: Round) -> bool:
        """Whether the next rank is gone: then the round is over."""
        lost = self._peers.lost(self.number, seen)
        if lost:
            self._end(self._ending(lost), lost)
        return bool(lost)

    def _look(self) -> Round | None:
        """None if the store cannot be reached just now."""
        try:
            return self._rounds.look(self.number)
        except (NotFound, Transient) as error:
            say(str(error))
            return None

    def _ending(self, reason: str) -> Ending:
        return Ending(
            Outcome.LOST, self._rank, reason, began=self._began, fruitless=self._fruitless
        )

    def _end(self, ending: Ending, reason: str = "") -> None:
        self._over(self._rounds.end(self.number, ending), reason)

    def _over(self, ending: Ending, reason: str = "") -> None:
        """Whoever sees the phase finds the rest: it is set last."""
        self.ending, self.reason = ending, reason
        self._go(Phase.OVER)

    def _go(self, phase: Phase) -> None:
        if phase not in _NEXT[self.phase]:
            raise RuntimeError(f"a rank cannot go from {self.phase.name} to {phase.name}")
        self.phase = phase
