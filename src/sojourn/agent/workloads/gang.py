"""A rank in a gang: all are there before any script starts, and one that falls takes all along."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from typing import TYPE_CHECKING

from sojourn.agent.background import Chore, say
from sojourn.agent.shared import Shared
from sojourn.agent.workloads.marking import Marking
from sojourn.agent.workloads.membership import Membership, Phase
from sojourn.agent.workloads.workload import End, Workload
from sojourn.core.errors import IntegrityError, NotFound
from sojourn.core.report import Outcome
from sojourn.storage.gangs import Member, Rounds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Event

    from sojourn.agent.process import RunningScript
    from sojourn.agent.restoring import Restoring
    from sojourn.agent.workloads.workload import Host
    from sojourn.core.context import Context
    from sojourn.core.report import Report
    from sojourn.storage.gangs import Mark, Round
    from sojourn.storage.manifest import Manifest

__all__ = ["Gang"]

_TICK = 0.2  # seconds between looks for a step that the script marks: a file, no more
_ASK_FIRST = 1.0  # seconds until rank 0 asks for the first mark; then longer and longer,
_ASK_GROWTH = 1.5
_ASK_SELDOM = 3  # until it is this many times the pause between snapshots
# An address for documentation that nobody has: nothing is sent, only a route is looked up.
_ANYWHERE = ("192.0.2.1", 9)
_HOSTS = "hosts"


class Gang(Workload):
    """One attempt of a rank, in one round of its gang.

    `_leads`: only rank 0 has a script of the user's, whose steps are those of all.
    """

    _leads = False

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._rank = host.lease.rank
        self._ranks = host.task.parallelism
        self._rounds = Rounds(host.store)
        self._membership = Membership(host)
        self._begins: Mark | None = None
        self._marking: Marking | None = None
        self._looked = self._asked = time.monotonic()
        self._ask_every = _ASK_FIRST
        self._chore = Chore("gang", self._round, self._pause)

    # Before the script starts.

    def restore(self, ctx: Context, restoring: Restoring) -> Manifest | None:
        """Fill the workdir as of the mark that all ranks go back to.

        A rank whose snapshot is damaged has no such mark any more: all look for another one.
        """
        self._begins = self._membership.gather(ctx, self._describe)
        if self._begins is None:
            return None
        path = self._members[self._rank].at(self._begins)
        if not path:
            return restoring.pushed(ctx)
        try:
            return restoring.snapshot(ctx, path)
        except (IntegrityError, NotFound) as error:
            say(f"could not restore {path}: {error}")
            self._rounds.drop(self._rank, path)
            self._membership.cannot_begin(f"a snapshot of rank {self._rank} is damaged")
            return None

    def ready(self, ctx: Context) -> bool:
        """Store what was restored as this attempt's own, then wait for all others to do so."""
        assert self._begins is not None  # noqa: S101 -- else nothing was restored
        number, snapshots = self._membership.number, self._host.snapshots
        folder = self._host.folder / "gang"
        self._marking = Marking(
            self._rounds, number, self._rank, folder, snapshots, alone=self._leads
        )
        self._marking.begin(self._begins)
        if not self._membership.be_ready(ctx):
            return False
        snapshots.forget_former()
        if self._rank == 0:
            self._rounds.forget_before(number)
        return True

    @property
    def _members(self) -> list[Member]:
        return self._membership.members

    def _describe(self) -> Member:
        """This machine, as the others can reach it."""
        config, lease = self._host.config, self._host.lease
        address = config.address or _own_address()
        port = _free_port(address)
        return Member(lease.rank, lease.attempt, config.machine, address, port, keys=self._keys())

    def _keys(self) -> Mapping[str, str]:
        return {}

    def environment(self) -> Mapping[str, str]:
        """The variables by which scripts and the usual libraries find the other ranks.

        User's own variables of these names win: they are not ours.
        """
        assert self._marking is not None  # noqa: S101 -- it is ready
        hosts = self._host.folder / "gang" / _HOSTS
        text = "".join(f"{member.address}\n" for member in self._members)
        Shared(hosts.parent).write(hosts.name, text.encode())
        main = self._members[0]
        port, rank, ranks = str(main.port), str(self._rank), str(self._ranks)
        return {
            "SOJOURN_HOSTS": str(hosts),
            "SOJOURN_MAIN_ADDRESS": main.address,
            "SOJOURN_MAIN_PORT": port,
            "SOJOURN_MARK": str(self._marking.command),
            # torchrun and PyTorch
            "MASTER_ADDR": main.address,
            "MASTER_PORT": port,
            "WORLD_SIZE": ranks,
            "RANK": rank,
            "NODE_RANK": rank,
            # JAX
            "JAX_COORDINATOR_ADDRESS": f"{main.address}:{port}",
            "JAX_NUM_PROCESSES": ranks,
            "JAX_PROCESS_ID": rank,
        }

    # While it runs.

    def start(self, script: RunningScript) -> None:
        """Begin to look after the others."""
        self._chore.start()

    def stop(self) -> None:
        """The others are looked after until here."""
        self._chore.stop()

    def end(self) -> End | None:
        """Whether the script is to end, because the others have or must."""
        here = self._membership
        if here.phase is Phase.RUNNING:
            return None
        if here.phase is Phase.DONE:
            return End(Outcome.SUCCEEDED, here.reason, 0)
        if here.ending is None or here.again:
            outcome = Outcome.PREEMPTED if here.again else Outcome.FAILED
            return End(outcome, here.reason)
        return End(here.ending.outcome, here.reason, here.ending.exit_code)

    def _pause(self, stopping: Event) -> None:
        stopping.wait(min(_TICK, self._membership.look_every))

    def _round(self) -> None:
        assert self._marking is not None  # noqa: S101 -- it started
        self._marking.look()
        here, now = self._membership, time.monotonic()
        if now - self._looked < here.look_every or here.phase is not Phase.RUNNING:
            return
        self._looked = now
        seen = here.look()
        if here.phase is not Phase.RUNNING:
            self._host.wake()
            return
        self._marking.follow(seen, leader=self._leads and self._rank > 0)
        self._marking.confirm(seen, self._ranks)
        self._marking.forget(seen, self._ranks)
        if self._rank == 0 and now - self._asked >= self._ask_every:
            self._ask(self._marking, seen)

    def _ask(self, marking: Marking, seen: Round) -> None:
        if mark := marking.next_to_ask(seen, self._ranks):
            self._rounds.ask(self._membership.number, mark)
            self._asked = time.monotonic()
            longest = self._host.config.snapshot_every * _ASK_SELDOM
            self._ask_every = min(self._ask_every * _ASK_GROWTH, longest)

    # After it has ended.

    @property
    def again(self) -> bool:
        """Whether all ranks start once more."""
        return self._membership.again

    def settle(self, ctx: Context, report: Report) -> Report:
        """What the end of this rank's script means, given all others: waits for them."""
        if report.outcome is Outcome.PREEMPTED and not self.again:
            self._membership.leave(report.reason)
            return report
        return self._membership.settle(ctx, report)


def _own_address() -> str:
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(_ANYWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"  # without a network, all are here


def _free_port(address: str) -> int:
    with closing(socket.socket()) as found:
        try:
            found.bind((address, 0))
        except OSError:
            found.bind(("", 0))
        return int(found.getsockname()[1])
