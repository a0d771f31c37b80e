"""A rank in a gang: all are there before any script starts, and one that falls takes all along."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sojourn.agent.background import Chore, say
from sojourn.agent.marking import Marking
from sojourn.agent.peers import Peers
from sojourn.core.activity import Activity, Doing
from sojourn.core.durations import format_seconds
from sojourn.core.errors import IntegrityError, NotFound, Transient
from sojourn.core.report import Outcome, Report
from sojourn.storage.gangs import ASKED, Ending, Mark, Member, Rounds, common_mark

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from threading import Event

    from sojourn.agent.restoring import Restoring
    from sojourn.agent.sync import Snapshots
    from sojourn.agent.telling import Telling
    from sojourn.core.context import Context
    from sojourn.core.task import Task
    from sojourn.storage.gangs import Round
    from sojourn.storage.lease import Lease, Leases
    from sojourn.storage.manifest import Manifest
    from sojourn.storage.store import Store

__all__ = ["AlreadyDone", "GangLife", "RoundOver"]

_FRUITLESS = 10  # rounds in a row that were lost at the same mark: the script may crash machines
_SOON = 0.05  # seconds between the first looks at a round
_TICK = 0.2  # seconds between looks for a step that the script marks: a file, no more
_LOOK_LESS = 0.02  # seconds for each rank: all of them look at what all of them wrote
_ASK_FIRST = 1.0  # seconds until rank 0 asks for the first mark; then longer and longer,
_ASK_GROWTH = 1.5
_ASK_SELDOM = 3  # until it is this many times the pause between snapshots


class RoundOver(Exception):
    """The round ended while this rank waited for the others."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending.reason)
        self.ending = ending


class AlreadyDone(Exception):
    """Another machine has done all of this rank's work in this round, and then was lost."""


class GangLife:
    """One attempt of a rank, in one round of its gang.

    `describe` makes its member: its address and keys. `wake` ends a wait of the main thread.
    """

    def __init__(
        self,
        store: Store,
        task: Task,
        lease: Lease,
        leases: Leases,
        *,
        folder: Path,
        describe: Callable[[], Member],
        snapshots: Snapshots,
        telling: Telling,
        wake: Callable[[], None],
        ttl: float,
        look: float,
        ask_every: float,
    ) -> None:
        self._rounds = Rounds(store)
        self._task = task
        self._ranks = task.parallelism
        self._rank = lease.rank
        self._leases = leases
        self._folder = folder
        self._describe = describe
        self._snapshots = snapshots
        self._telling = telling
        self._wake = wake
        self._ttl = ttl
        self._look_every = max(look, self._ranks * _LOOK_LESS)
        self._ask_seldom = ask_every * _ASK_SELDOM
        self._ask_every = _ASK_FIRST
        self._peers = Peers(store, self._rounds, self._rank, ttl)
        self._number = 0
        self._before: Ending | None = None
        self._began = ""
        self._fruitless = 0
        self._marking: Marking | None = None
        self._looked = self._asked = time.monotonic()
        self._seen: Round | None = None
        self._chore = Chore("gang", self._round, self._pause)
        self.members: list[Member] = []
        self._program_ended = False
        self.reason = ""
        self.again = False  # all start again
        self.settled = False  # it is known how the round ended
        self.discarded = False  # what the script does is of no use any more
        self.look_within = float("inf")  # it wakes whoever waits

    # Before the script starts.

    def restored(self, ctx: Context, restoring: Restoring) -> Manifest:
        """Fill the workdir as of the mark that all ranks go back to.

        A rank whose snapshot is damaged has no such mark any more: all look for another one.
        """
        path = self._gather(ctx)
        if not path:
            return restoring.pushed(ctx)
        try:
            return restoring.snapshot(ctx, path)
        except (IntegrityError, NotFound) as error:
            say(f"could not restore {path}: {error}")
            self._rounds.drop(self._rank, path)
            why = f"a snapshot of rank {self._rank} is damaged"
            raise RoundOver(self._end(replace(self._ending(why), expected=True))) from error

    def _gather(self, ctx: Context) -> str:
        """Wait until all ranks are there; gives the snapshot to restore, empty: what was pushed."""
        give_up = time.monotonic() + self._task.gang_timeout
        self._join()
        self._await(ctx, lambda seen: len(seen.members), give_up)
        self.members = [self._rounds.member(self._number, rank) for rank in range(self._ranks)]
        mark = common_mark(self.members) or Mark(ASKED, 0)
        self._began = mark.name
        before = self._before
        if before and before.began in ("", self._began) and not before.expected:
            self._fruitless = before.fruitless + bool(before.began)
        if self._fruitless >= _FRUITLESS:
            why = f"a machine was lost {_FRUITLESS} times in a row at the same step"
            raise RoundOver(
                self._end(
                    replace(
                        self._ending(f"{why}; the script may be crashing it"),
                        outcome=Outcome.FAILED,
                    )
                )
            )
        return self.members[self._rank].at(mark)

    def make_ready(self, ctx: Context) -> None:
        """Store what was restored as this attempt's own, then wait for all others to do so."""
        mark = Mark.parse(self._began)
        assert mark is not None  # noqa: S101 -- `gather` made it
        folder = self._folder / "gang"
        self._marking = Marking(
            self._rounds,
            self._number,
            self._rank,
            folder,
            self._snapshots,
            alone=self._task.mpi is not None,
        )
        self._marking.begin(mark)
        self._rounds.be_ready(self._number, self._rank, self._ending(""))
        self._await(ctx, lambda seen: len(seen.ready))
        self._telling.gathering = None
        self._snapshots.forget_former()
        if self._rank == 0:
            self._rounds.forget_before(self._number)

    @property
    def mark_command(self) -> str:
        """What a script calls to mark a step."""
        return str(self._marking.command) if self._marking else ""

    def _join(self) -> None:
        """Become a member of the newest round that has not ended; of a new one, if there is none.

        A round in which this rank was with another machine has lost that one.
        """
        number = max(1, self._rounds.newest())
        while True:
            self._number = number
            seen = self._rounds.look(number)
            if seen.over:
                self._before = self._rounds.ending(number)
                if self._before.outcome.final:
                    raise RoundOver(self._before)
                number += 1
            elif self._rank in seen.done and not seen.failing:
                raise AlreadyDone
            elif self._rank in seen.members:
                self._end(self._of_lost(seen))
            elif self._rounds.join(number, self._describe_with_marks()):
                return

    def _describe_with_marks(self) -> Member:
        return replace(self._describe(), marks=self._rounds.marks_of(self._rank, self._ranks))

    def _of_lost(self, seen: Round) -> Ending:
        """How a round ends whose member of this very rank is gone."""
        told = Ending(Outcome.LOST, self._rank, f"the machine of rank {self._rank} was lost")
        if self._rank not in seen.ready:
            return told
        known = self._rounds.readiness(self._number, self._rank)
        return replace(told, began=known.began, fruitless=known.fruitless)

    def _await(
        self, ctx: Context, count: Callable[[Round], int], give_up: float = float("inf")
    ) -> None:
        """Wait until this is so for all ranks; the end of the round raises RoundOver."""
        pause = _SOON
        while True:
            seen = self._look()
            if seen is not None:
                self._telling.gathering = Activity(Doing.GATHERING, count(seen), self._ranks)
                if seen.over:
                    raise RoundOver(self._rounds.ending(self._number))
                if seen.failing:
                    raise RoundOver(self._after_failure(ctx))
                if count(seen) >= self._ranks:
                    return
                if lost := self._peers.lost(self._number, seen):
                    raise RoundOver(self._end(self._ending(lost)))
                if time.monotonic() > give_up:
                    raise RoundOver(self._give_up(seen))
            ctx.sleep(pause)
            pause = min(pause * 1.25, self._look_every)

    def _give_up(self, seen: Round) -> Ending:
        """The others never came: no machine is to wait for them, and what is missing is told."""
        missing = [rank for rank in range(self._ranks) if rank not in seen.members]
        some = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        limit = format_seconds(self._task.gang_timeout)
        noun = "rank" if len(missing) == 1 else "ranks"
        why = f"the gang was not complete after {limit}: no machine for {noun} {some}"
        ending = self._end(Ending(Outcome.FAILED, missing[0], why))
        if ending.outcome.final:  # another one may just have ended the round otherwise
            for rank in missing:
                self._leases.give_up(rank, ending.outcome, ending.reason)
        return ending

    # While it runs.

    def start(self) -> None:
        """Begin to look after the others."""
        self._chore.start()

    def stop(self) -> None:
        """The script has ended."""
        self._chore.stop()

    def over(self) -> bool:
        """Whether the script is to end, because the others have or must."""
        return bool(self.reason)

    def _pause(self, stopping: Event) -> None:
        stopping.wait(min(_TICK, self._look_every))

    def _round(self) -> None:
        assert self._marking is not None  # noqa: S101 -- it started
        self._marking.look()
        now = time.monotonic()
        if now - self._looked < self._look_every or self.reason:
            return
        self._looked = now
        seen = self._rounds.look(self._number)
        mpi = self._task.mpi is not None
        if why := self._why_over(seen):
            self.reason = why
            self._wake()
            return
        self._marking.follow(seen, leader=mpi and self._rank > 0)
        self._marking.confirm(seen, self._ranks)
        self._marking.forget(seen, self._ranks)
        if self._rank == 0 and now - self._asked >= self._ask_every:
            self._ask(self._marking, seen)

    def _ask(self, marking: Marking, seen: Round) -> None:
        if mark := marking.next_to_ask(seen, self._ranks):
            self._rounds.ask(self._number, mark)
            self._asked = time.monotonic()
            self._ask_every = min(self._ask_every * _ASK_GROWTH, self._ask_seldom)

    def _why_over(self, seen: Round) -> str:
        if seen.over:
            self.discarded = not self._rounds.ending(self._number).outcome.final
            return "the gang has ended"
        if seen.failing:
            return "another rank failed"
        if self._task.mpi and self._rank > 0 and 0 in seen.done:
            self._program_ended = True
            return "the program has ended"
        if lost := self._peers.lost(self._number, seen):
            self.discarded = not self._end(self._ending(lost)).outcome.final
            return lost
        return ""

    # After it has ended.

    def settle(self, ctx: Context, report: Report) -> Report:
        """What the end of this rank's script means, given all others: waits for them.

        Sets `again` if all are to start once more.
        """
        done = report.outcome is Outcome.SUCCEEDED and (self._program_ended or not self.reason)
        if done:
            self._rounds.say(self._number, "done", self._rank)
        elif report.outcome.final and not self.reason:
            why = Ending(report.outcome, self._rank, report.reason, report.exit_code)
            self._rounds.fail(self._number, why)
        pause = _SOON
        while True:
            seen = self._look()
            if seen is not None:
                if seen.over:
                    return self.after(self._rounds.ending(self._number), report)
                if seen.failing:
                    return self.after(self._after_failure(ctx), report)
                if len(seen.done) >= self._ranks:
                    return report
                if lost := self._peers.lost(self._number, seen):
                    return self.after(self._end(self._ending(lost)), report)
            ctx.sleep(pause)
            pause = min(pause * 1.25, self._look_every)

    def leave(self, reason: str) -> None:
        """This machine goes away: all others have to start again."""
        if self._number:
            why = f"rank {self._rank}: {reason}"
            self._end(replace(self._ending(why), outcome=Outcome.PREEMPTED, expected=True))

    def after(self, ending: Ending, report: Report) -> Report:
        """The report of this rank, after its round has ended so."""
        self.settled = True
        if not ending.outcome.final:
            self.again = True
            why = f"{ending.reason}; all ranks start again"
            return replace(report, outcome=Outcome.PREEMPTED, exit_code=None, reason=why)
        if report.outcome is Outcome.SUCCEEDED and (self._program_ended or not self.reason):
            return report
        if ending.rank == self._rank and report.reason:
            return report
        failed = (
            f"rank {ending.rank} failed: {ending.reason}" if ending.exit_code else ending.reason
        )
        return replace(report, outcome=ending.outcome, exit_code=ending.exit_code, reason=failed)

    def _after_failure(self, ctx: Context) -> Ending:
        """A script failed: because it failed, or because it missed one whose machine is gone?

        Who is still there says so. If all do, the failure counts.
        """
        self._rounds.say(self._number, "stopped", self._rank)
        give_up = time.monotonic() + self._ttl
        while True:
            seen = self._look()
            if seen is not None:
                if seen.over:
                    return self._rounds.ending(self._number)
                if len(seen.stopped) >= self._ranks:
                    return self._end(self._rounds.failure(self._number))
                silent = [rank for rank in range(self._ranks) if rank not in seen.stopped]
                if time.monotonic() > give_up:
                    return self._end(self._ending(f"the machine of rank {silent[0]} was lost"))
            ctx.sleep(min(_TICK, self._look_every))

    # What all of it needs.

    def _look(self) -> Round | None:
        """None if the store cannot be reached just now."""
        try:
            return self._rounds.look(self._number)
        except (NotFound, Transient) as error:
            say(str(error))
            return None

    def _ending(self, reason: str) -> Ending:
        return Ending(
            Outcome.LOST, self._rank, reason, began=self._began, fruitless=self._fruitless
        )

    def _end(self, ending: Ending) -> Ending:
        return self._rounds.end(self._number, ending)
