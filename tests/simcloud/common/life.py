"""The life of an instance and its machine: booting, ending, being taken away, starting again.

A cloud's own instance holds a `Life` and is told of each phase. What a phase is called in a cloud,
and which instances there are to be, does not belong here.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from tests.simcloud.common.clock import Clock
from tests.simcloud.machines.host import Host
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, MachineError, MachineSpec
from tests.simcloud.machines.wires import Cable, Packet, Switch
from tests.support.waiting import patience


class Phase(enum.Enum):
    """Where an instance is in its life."""

    PENDING = "pending"  # its machine is still to be booted
    RUNNING = "running"
    ENDING = "ending"  # its machine is shutting down
    STOPPED = "stopped"  # it has no machine, and its disk is kept
    GONE = "gone"


class Owner(Protocol):
    """A cloud's instance, as its life sees it."""

    @property
    def place(self) -> tuple[str, str]:
        """Its network, and its address there."""

    def spec(self, on_end: Callable[[RunningMachine], None]) -> MachineSpec:
        """The machine to boot for it."""

    def moved(self, phase: Phase, why: Any) -> None:
        """It is in another phase; called with the lock held. `why` is the cloud's, or None."""

    def afterwards(self, end: End | None) -> tuple[Phase, Any]:
        """What becomes of it when its machine ended by itself, and why. None: it never booted.

        RUNNING: it is booted again at once, and nobody is told.
        """


Firewall = Callable[[Any, Any, str, int], bool]
"""Whether one instance reaches another by a protocol at a port; called with the lock held."""


class Lives:
    """What all lives of an account share: the host of its machines, its lock, its threads."""

    def __init__(self, host: Host | None, changed: threading.Condition, clock: Clock) -> None:
        self.host = host
        self.changed = changed
        self.clock = clock
        self.firewall: Firewall = lambda *_: False
        self._workers: list[threading.Thread] = []  # all that may still run
        self._owners: list[Owner] = []
        self._switch: Switch | None = None

    def cable(self, owner: Owner) -> Cable:
        """What connects an instance's machine with others of its network."""
        with self.changed:
            self._switch = self._switch or Switch(self._admits)
            if owner not in self._owners:
                self._owners.append(owner)
            return Cable(self._switch, *owner.place)

    def _admits(self, packet: Packet) -> bool:
        with self.changed:
            # Addresses are given again: the last to have one is meant.
            at = {owner.place: owner for owner in self._owners}
            source = at.get((packet.network, packet.source))
            target = at.get((packet.network, packet.target))
            if source is None or target is None:
                return False
            return self.firewall(source, target, packet.protocol, packet.port)

    def start(self, work: Callable[..., None], *arguments: object) -> None:
        """Do something in a thread; the lock is held by who calls this."""

        def run() -> None:
            try:
                work(*arguments)
            finally:
                with self.changed:
                    self.changed.notify_all()

        worker = threading.Thread(target=run, name=work.__name__, daemon=True)
        self._workers = [each for each in self._workers if each.is_alive()]
        self._workers.append(worker)
        worker.start()

    def settle(self) -> None:
        """Wait for the threads of this process; the host has been closed, or was never there."""
        while True:
            with self.changed:
                workers, self._workers = self._workers, []
            if not workers:
                break
            for worker in workers:
                worker.join()
        if self._switch:
            self._switch.close()


class Life:
    """Of one instance. Its methods are called with the lock held, and do not wait."""

    def __init__(self, lives: Lives, owner: Owner) -> None:
        self._lives = lives
        self._owner = owner
        self._changed = lives.changed
        self._then = Phase.GONE  # what an ending leads to
        self.phase = Phase.PENDING
        self.machine: RunningMachine | None = None
        self.panics = False  # its machine is killed, to be started again

    def boot(self, after: float) -> None:
        """Have the machine booted when so many seconds have passed."""
        self._lives.start(self._boot, self._lives.clock.now() + after)

    def end(self, within: float, why: Any = None, then: Phase = Phase.GONE) -> None:
        """Press the power button, and kill the machine after this time; 0: kill it at once."""
        if self.phase is Phase.STOPPED and then is Phase.GONE:
            self._move(Phase.GONE, why)
        elif self.phase in (Phase.PENDING, Phase.RUNNING) or (
            self.phase is Phase.ENDING and not within
        ):
            self._then = then
            if self.machine and not within:
                self.machine.cut_power()  # before anybody can tell it that it goes
            self._move(Phase.ENDING, why)
            self._lives.start(self._shut_down, within)
        elif self.phase is Phase.ENDING and then is Phase.GONE:
            self._then = then

    def resume(self) -> None:
        """Boot a stopped one again, on its disk."""
        assert self.phase is Phase.STOPPED
        self._move(Phase.PENDING)
        if self.machine:
            self._lives.start(self._restart, self.machine)
        else:
            self._lives.start(self._boot, 0.0)

    def panic(self) -> RunningMachine:
        """Mark it to be started again, without a word to anybody, once this machine is killed."""
        self.panics, former = True, self.machine
        assert former, "there is no machine"
        return former

    def reset(self) -> None:
        """Cut its power and have it boot again."""
        if self.machine:
            self._lives.start(self.panic().kill)

    def _boot(self, ready: float) -> None:
        with self._changed:
            while self.phase is Phase.PENDING and (left := ready - self._lives.clock.now()) > 0:
                self._changed.wait(left)
            if self.phase is not Phase.PENDING:
                self._ended()
                return
        machine = self._make()
        with self._changed:
            self.machine = machine
            if self._lives.host and machine is None:
                self._move(*self._owner.afterwards(None))
            elif self.phase is Phase.PENDING:
                self._move(Phase.RUNNING)
            elif machine is None:
                self._ended()
            unwanted = self._ending  # who ends it from now on, finds the machine
        if machine and unwanted:
            machine.kill()

    def _make(self) -> RunningMachine | None:
        if self._lives.host is None:
            return None
        try:
            spec = self._owner.spec(self._went)
            return self._lives.host.boot(replace(spec, cable=self._lives.cable(self._owner)))
        except MachineError:
            return None  # the host is closed

    def _went(self, machine: RunningMachine) -> None:
        """A machine is gone, by itself or because of us."""
        with self._changed:
            if self.phase is Phase.ENDING:
                self._ended()
                return
            phase, why = self._owner.afterwards(machine.end)
            if phase is Phase.RUNNING or self.panics:
                self._lives.start(self._restart, machine)
            else:
                self._move(phase, why)

    def _restart(self, former: RunningMachine) -> None:
        """To the cloud, it was there all the time."""
        assert self._lives.host
        with suppress(MachineError):  # the host is closed
            again = self._lives.host.restart(former)
            with self._changed:
                self.machine, self.panics = again, False
                if self.phase is Phase.PENDING:
                    self._move(Phase.RUNNING)
                self._changed.notify_all()
                unwanted = self._ending
            if unwanted:
                again.kill()

    def _shut_down(self, within: float) -> None:
        machine = self.machine
        if machine is None:
            with self._changed:
                if self._lives.host is None:
                    self._ended()
            return  # what boots looks at the phase when it has
        if within:
            machine.power_button()
        if not _gone_within(machine, within):
            machine.kill()

    @property
    def _ending(self) -> bool:
        return self.phase is Phase.ENDING

    def _ended(self) -> None:
        if self._ending:
            self._move(self._then)

    def _move(self, phase: Phase, why: Any = None) -> None:
        self.phase = phase
        self._owner.moved(phase, why)
        self._changed.notify_all()


def _gone_within(machine: RunningMachine, seconds: float) -> bool:
    """A busy computer's machines need longer to store their work, and the load may come later."""
    start = time.monotonic()
    while not machine.wait(min(seconds, 1.0)):
        if time.monotonic() >= start + patience(seconds):
            return False
    return True
