"""The supervisor: keeps as many machines alive as are wanted, then ends.

It is started detached by whichever command needs it (`python -m sojourn.host.supervisor
FOLDER LOCK`), holds a lock for as long as it lives, and keeps all that matters in files, so that
another one can take its place if it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import sojourn.core.quickstart  # noqa: F401 -- before all that uses dataclasses
from sojourn.agent.config import GONE, RANK_ENDED
from sojourn.agent.process import adopt_orphans, kill_below
from sojourn.agent.wakeup import Wakeup
from sojourn.core.errors import SojournError
from sojourn.host.backoff import Starts
from sojourn.host.desired_count import Want, Wanted
from sojourn.host.exec_sessions import kill_guests
from sojourn.host.files import read_rows, write_lock, write_whole
from sojourn.host.folders import TaskFolders, list_disks
from sojourn.host.identity import Place, Supervised
from sojourn.host.machines import STORING_WITHIN, SUSPENDED_FOR, LocalMachine, Settings
from sojourn.host.orphans import agents, is_suspended, kill_strays

__all__ = ["Supervisor"]

# Seconds between rounds if nothing wakes it: commands on this computer do, by a signal. It is for
# those in other containers and on other computers, which can only change what is wanted.
_ROUND = 3.0
_SHORT_LIFE = 5.0  # a machine or supervisor that was lost sooner makes the next one wait
_LONGEST_WAIT = 30.0


class Supervisor:
    """One task's supervisor."""

    def __init__(self, folders: TaskFolders) -> None:
        self._folders = folders
        self._settings = Settings.read(folders.settings)
        self._prefix = folders.machine_prefix
        self._wanted = Wanted(folders)
        self._alive: list[LocalMachine] = []
        self._dead: set[str] = set()
        self._done: list[str] = []  # the generations of machines that had done their work
        self._short_lives = 0
        self._not_before = 0.0
        self._began = time.monotonic()
        self._starting = True

    def run(self) -> None:
        """Live until no machine is wanted and none is left."""
        adopt_orphans()
        wakeup = Wakeup()
        wakeup.on_signals(signal.SIGCHLD, signal.SIGUSR1)
        self._inherit()
        while self._folders.settings.exists():
            self._bury()
            self._adjust(self._wanted.read())
            if not self._alive and self._wanted.read().machines == 0:
                return
            wakeup.wait(self._pause())
            if self._starting and time.monotonic() - self._began > _SHORT_LIFE:
                self._starting = False
                Starts(self._folders.starts).forget()

    def _inherit(self) -> None:
        """Let agents of a former supervisor store their work; then all its machines are gone."""
        traces = (Path(self._settings.machines_folder), self._folders.events)
        if not any(path.exists() for path in traces):
            return  # there was no machine yet: looking at all processes takes a while
        give_up = self._began + STORING_WITHIN
        while (left := agents(self._folders)) and time.monotonic() < give_up:
            for pid in filter(is_suspended, left):
                patient = time.monotonic() < self._began + SUSPENDED_FOR
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT if patient else signal.SIGKILL)
            time.sleep(0.05)
        for disk in list_disks(Path(self._settings.machines_folder), self._prefix):
            kill_guests(self._folders, disk, os.getppid())
        kill_strays(self._folders, os.getppid())
        rows = read_rows(self._folders.events)
        self._dead.update(row["machine"] for row in rows)
        over = {row["machine"] for row in rows if row["code"] != "machine-started"}
        for machine in sorted(self._dead - over):
            self._tell("machine-lost", machine, "Machine lost with its supervisor")

    def _pause(self) -> float:
        waiting = self._not_before - time.monotonic()
        enforced = [machine.enforced_within() for machine in self._alive]
        return min(_ROUND, waiting if waiting > 0 else _ROUND, *enforced)

    def _adjust(self, want: Want) -> None:
        wanted, generation = want
        for machine in self._alive[wanted:]:
            machine.tell()
        for machine in self._alive:
            machine.enforce()
        before = len(self._alive)
        while len(self._alive) < wanted and time.monotonic() >= self._not_before:
            self._start_machine(generation)
        if len(self._alive) != before:
            self._write_machines()

    def _start_machine(self, generation: str) -> None:
        try:
            machine = LocalMachine(self._settings, self._prefix, self._dead, generation)
        except OSError as error:
            self._tell("machine-failed", "", f"Could not start a machine: {error}")
            self._back_off()
            return
        self._alive.append(machine)
        self._tell("machine-started", machine.id, "Machine started")

    def _bury(self) -> None:
        ended = [machine for machine in self._alive if machine.ended() is not None]
        for machine in ended:
            self._alive.remove(machine)
            self._dead.add(machine.id)
            self._kill_leftovers()
            kill_guests(self._folders, machine.folder, os.getppid())
            if machine.ended() == RANK_ENDED:
                self._done.append(machine.generation)
                self._tell("machine-ended", machine.id, "Machine finished its work")
            else:
                self._lost(machine)
            kept = machine.clean_up()
            if kept:
                words = (
                    f"Files that could not be stored are kept in {kept} until the task is deleted"
                )
                self._tell("machine-kept", machine.id, words)
        if ended:
            self._write_machines()
        self._shrink()

    def _lost(self, machine: LocalMachine) -> None:
        if machine.ended() == GONE:
            self._tell("machine-gone", machine.id, "Machine interrupted")
        elif machine.ended() == -signal.SIGTERM:  # the notice came before it could take one
            self._tell("machine-gone", machine.id, "Machine stopped before it began")
        else:
            words = machine.last_words()
            description = "Machine lost" + (f": {words}" if words else "")
            self._tell("machine-lost", machine.id, description)
        if time.monotonic() - machine.began > _SHORT_LIFE:
            self._short_lives = 0
        else:
            self._back_off()

    def _back_off(self) -> None:
        """Let the next machine wait, except after the first short life."""
        self._short_lives += 1
        if self._short_lives > 1:
            wait = min(_LONGEST_WAIT, 0.1 * 2**self._short_lives)
            self._not_before = time.monotonic() + wait

    def _kill_leftovers(self) -> None:
        """A dead agent's processes are ours now: they must not outlive it."""
        kill_below(frozenset(machine.pid for machine in self._alive))

    def _shrink(self) -> None:
        """Want fewer machines, by those that had done their work; on a full disk, later."""
        if self._done:
            with suppress(OSError):
                self._wanted.subtract(self._done)
                self._done.clear()

    def _write_machines(self) -> None:
        rows = [
            {"id": machine.id, "pid": str(machine.pid), "started": machine.started}
            for machine in self._alive
        ]
        with suppress(OSError):
            write_whole(self._folders.machines, json.dumps(rows), passing=True)

    def _tell(self, code: str, machine: str, description: str) -> None:
        row = {"time": _now(), "code": code, "machine": machine, "description": description}
        with suppress(OSError), open(self._folders.events, "a") as file:
            # Begins with a newline as well, should a former row be torn: blank lines do not count.
            file.write(f"\n{json.dumps(row)}\n")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def main() -> int:
    """Supervise the task in the folder given; the lock comes along as a descriptor."""
    folders = TaskFolders(Path(sys.argv[1]))
    lock = int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)  # a shell starts us with these ignored
    os.set_inheritable(lock, False)
    _sign(lock, Supervised(os.getpid(), Place.here()))
    try:
        Supervisor(folders).run()
    except SojournError as error:
        raise SystemExit(error.message) from error  # its last line is what users get to see
    Starts(folders.starts).forget()
    _sign(lock, Supervised())  # whoever finds more in a free lock knows that its holder was killed
    return 0


def _sign(lock: int, supervised: Supervised) -> None:
    with suppress(OSError):  # it works without: machines are ended a moment later
        write_lock(lock, supervised.text())


if __name__ == "__main__":
    os._exit(main())  # there is nothing to take apart
