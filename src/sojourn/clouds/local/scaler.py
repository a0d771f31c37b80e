"""The scaler of a task: a few files, and a supervisor process while machines are wanted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from sojourn.agent.disk import remove_tree
from sojourn.core.errors import Conflict, IntegrityError, NotFound, Transient
from sojourn.core.events import CloudEvent
from sojourn.core.interfaces import Fleet, KeyPair, Member
from sojourn.host.backoff import Starts
from sojourn.host.desired_count import Wanted
from sojourn.host.environment import needed
from sojourn.host.exec_sessions import kill_guests
from sojourn.host.files import (
    read_held,
    read_lock,
    read_machines,
    read_rows,
    try_lock,
    write_lock,
    write_whole,
)
from sojourn.host.folders import TaskFolders, list_disks, remove_empty
from sojourn.host.identity import Place, Supervised
from sojourn.host.machines import Settings
from sojourn.host.orphans import agents, is_agent, is_supervisor, kill_strays

if TYPE_CHECKING:
    from pathlib import Path

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["LocalScaler"]

_ENDS_WITHIN = 5.0  # seconds that a supervisor has to end when its task is removed
_LOOK_AGAIN = 0.02  # seconds
_LONGEST_LOG = 64 << 10  # bytes that former supervisors may have said


class LocalScaler:
    """Keeps machines alive by a detached supervisor, which any command may have to restart."""

    stage = 1

    def __init__(
        self,
        folders: TaskFolders,
        machines_folder: Path,
        id: TaskId,
        task: Task | None,
    ) -> None:
        self._folders = folders
        self._machines_folder = machines_folder
        self._id = id
        self._task = task
        self._wanted = Wanted(folders)
        self._starts = Starts(folders.starts)

    @property
    def title(self) -> str:
        return f"supervisor of {self._id}"

    def read(self, ctx: Context) -> bool:
        return self._folders.scaler.exists()

    def create(self, ctx: Context) -> None:
        self._folders.scaler.mkdir(mode=0o700, exist_ok=True)
        if self._task is not None and not self._has_settings():
            settings = {
                "machines_folder": str(self._machines_folder),
                "store": str(self._folders.store),
                "timeout": self._task.timeout,
            }
            write_whole(self._folders.settings, json.dumps(settings))

    def _has_settings(self) -> bool:
        try:
            Settings.read(self._folders.settings)
        except (FileNotFoundError, IntegrityError):
            return False
        return True

    def delete(self, ctx: Context) -> None:
        if self.read(ctx):
            with suppress(FileNotFoundError):  # somebody else removes it as well
                self._wanted.set(0)
            self._wake(signal.SIGUSR1)
            self._wait_until_ended(ctx)
        disks = list_disks(self._machines_folder, self._folders.machine_prefix)
        for disk in disks:
            kill_guests(self._folders, disk)
        kill_strays(self._folders)
        for disk in disks:
            self._remove(disk)
        remove_empty(self._machines_folder, self._machines_folder.parent.parent)
        self._remove(self._folders.scaler)

    def _remove(self, folder: Path) -> None:
        try:
            remove_tree(folder)
        except OSError as error:
            raise Transient(
                f"Could not remove {folder}: {error}", hint="Remove it manually, then try again."
            ) from error

    def scale(self, ctx: Context, machines: int) -> None:
        # What lost its settings can be stopped, and so deleted, all the same.
        if not (self._folders.settings if machines else self._folders.scaler).exists():
            raise NotFound(f"Supervisor of {self._id} not found", hint="Create the task again.")
        if machines:
            self._supervisor()  # else it is told in any case: it may see it, wherever it is
        self._wanted.set(machines)
        self._wake(signal.SIGUSR1)
        self._starts.forget()  # who asks for machines does not wait
        self._revive(tries=5)

    def fleet(self, ctx: Context) -> Fleet | None:
        if not self.read(ctx):
            return None
        self._revive()
        # Those alive first: one that ends between the two looks was wanted no more.
        alive = [Member(m["id"], "127.0.0.1", m["started"]) for m in self._machines()]
        return Fleet(self._wanted.read().machines, tuple(alive))

    def events(self, ctx: Context) -> list[CloudEvent]:
        rows = read_rows(self._folders.events)
        return [CloudEvent(row["time"], row["code"], row["description"]) for row in rows]

    def obstacle(self, ctx: Context) -> str:
        if self._starts.count() <= 2:  # the last of them may be doing well
            return ""
        return f"the supervisor exits immediately: {self._last_words()}"

    def _last_words(self) -> str:
        with suppress(OSError, IndexError):
            return self._folders.supervisor_log.read_text(errors="replace").splitlines()[-1]
        return "no output"

    def keys(self, ctx: Context) -> KeyPair | None:
        return None  # nobody logs in

    def console(self, ctx: Context, machine: str) -> str:
        return ""  # it has none

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.agent(machine), signal.SIGTERM if notice else signal.SIGKILL)

    def agent(self, machine: str) -> int:
        """The pid of the agent of a machine that is alive."""
        for row in self._machines():
            if row["id"] == machine:
                self._refuse_elsewhere()
                return int(row["pid"])
        raise NotFound(
            f"Machine {machine} not found",
            hint=f"Run `sojourn status {self._id}` to see running machines.",
        )

    def _machines(self) -> list[dict[str, str]]:
        rows = read_machines(self._folders.machines)
        held, supervisor = self._supervisor()
        if held and supervisor.elsewhere:
            return rows  # it knows them, and its pids are not ours
        return [row for row in rows if is_agent(int(row["pid"]), row["id"])]

    def _supervisor(self) -> tuple[bool, Supervised]:
        """Whether there is a supervisor, and who it is or was. If that cannot be told: Conflict."""
        held, text = read_lock(self._folders.supervisor_lock)
        supervisor = Supervised.parse(text)
        if not held:
            self._refuse_unknown(supervisor.place)
        return held, supervisor

    def _refuse_unknown(self, place: Place | None) -> None:
        if place and not place.tells_locks():
            raise Conflict(
                f"The machines of {self._id} run on another computer, {place.host}, "
                "or ran there when it went down",
                hint=f"Run `sojourn` on {place.host}. If that computer is gone or rebooted, "
                f"remove {self._folders.supervisor_lock} and try again.",
            )

    def _refuse_elsewhere(self) -> None:
        held, supervisor = self._supervisor()
        if held and supervisor.place and supervisor.elsewhere:
            raise Conflict(
                f"The machines of {self._id} run on {supervisor.place.host}, "
                "or in another container",
                hint="Run `sojourn` there.",
            )

    def _revive(self, tries: int = 1) -> None:
        """Start a supervisor if one is needed and there is none, or it was killed.

        The supervisor inherits the lock, so that there is never a moment without a holder. Whoever
        looks whether it is held holds it for an instant, hence the tries where it matters.
        """
        if (
            not self._folders.scaler.exists()
            or self._wanted.read().machines == 0
            or not self._starts.are_due()
        ):
            return
        for number in range(tries):
            time.sleep(0.01 * number)
            lock = try_lock(self._folders.supervisor_lock)
            if lock is not None:
                break
        else:
            return
        try:
            self._refuse_unknown(Supervised.parse(read_held(lock)).place)
            # The pid of a former one may be somebody else's by now.
            write_lock(lock, Supervised(place=Place.here()).text())
            self._starts.add()
            self._start_supervisor(lock)
        finally:
            os.close(lock)

    def _start_supervisor(self, lock: int) -> None:
        program = [sys.executable, "-m", "sojourn.host.supervisor"]
        with open(self._folders.supervisor_log, "ab") as log:
            if log.tell() > _LONGEST_LOG:
                log.truncate(0)
            # By way of a shell that ends at once: it must be nobody's child, or it would stay a
            # zombie in a program that runs for long.
            subprocess.run(
                ["/bin/sh", "-c", '"$@" &', "sh", *program, str(self._folders.root), str(lock)],
                cwd=self._folders.scaler,
                env=needed(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[lock],
                check=True,
            )

    def _wake(self, number: signal.Signals) -> None:
        """Send the supervisor a signal; one that is elsewhere looks by itself every second."""
        held, text = read_lock(self._folders.supervisor_lock)
        supervisor = Supervised.parse(text)
        pid = supervisor.pid
        # Somebody else may hold it for an instant, to look, after its supervisor was killed.
        if held and pid and not supervisor.elsewhere and is_supervisor(pid, self._folders):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                os.kill(pid, signal.SIGCONT)  # somebody may have suspended it

    def _wait_until_ended(self, ctx: Context) -> None:
        """Who removes a task has waited for its machines, or does not want to."""
        give_up = time.monotonic() + _ENDS_WITHIN
        while self._supervisor()[0] or agents(self._folders):
            if time.monotonic() > give_up:
                self._refuse_elsewhere()
                self._wake(signal.SIGKILL)
                return
            ctx.sleep(_LOOK_AGAIN)
