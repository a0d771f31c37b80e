"""The script's process, and all that it starts: nothing of it outlives the script.

On Linux the agent becomes the reaper of orphans, so that even daemons which left the script's
session are found below it; elsewhere the script's process group has to do.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Protocol

from sojourn.agent.config import GUESTS
from sojourn.agent.environment import inherited
from sojourn.agent.shared import Shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "CannotStart",
    "Launch",
    "RunningScript",
    "Script",
    "adopt_orphans",
    "below",
    "cannot_start",
    "kill_below",
    "kill_with_group",
    "run_here",
]

_PR_SET_CHILD_SUBREAPER = 36
_CHASES = 200  # between two looks at all processes
_NOT_FOUND, _NOT_RUNNABLE = 127, 126  # a shell's exit codes
_KILLED_WITHIN = 10.0  # seconds; a process that hangs in the kernel may take longer
_CHASED_WITHIN = 30.0  # seconds; one that forks and ends all the time is hard to catch


def adopt_orphans() -> None:
    """Have processes whose parents end become children of this one."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _processes() -> Iterator[tuple[int, str, int]]:
    """Pid, state and parent of every process; none where the system does not tell."""
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        with suppress(OSError, ValueError, IndexError):
            if not name.isdecimal():
                continue
            with open(f"/proc/{name}/stat", "rb", buffering=0) as stat:
                # The name of the program, in parentheses, may contain anything.
                state, parent = stat.read().rpartition(b")")[2].split()[:2]
            yield int(name), state.decode(), int(parent)


def below(ancestor: int, spare: frozenset[int] = frozenset()) -> list[int]:
    """All processes below one, by pid, that are alive.

    Those in `spare` are left out with all that is below them, also what they start just now.
    """
    children: dict[int, list[int]] = {}
    for pid, state, parent in _processes():
        if state != "Z":
            children.setdefault(parent, []).append(pid)
    found: list[int] = []
    todo = [ancestor]
    while todo:
        todo_next = [pid for pid in children.get(todo.pop(), []) if pid not in spare]
        found.extend(todo_next)
        todo.extend(todo_next)
    return found


def _used_by(pid: int) -> float:
    """Seconds of processors, with those of children that have ended; gone, or not told: 0."""
    with suppress(OSError, ValueError, IndexError):
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as stat:
            fields = stat.read().rpartition(b")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def kill_below(spare: frozenset[int] = frozenset()) -> None:
    """Kill all processes below this one, also those that are started meanwhile, and bury them."""
    give_up = time.monotonic() + _CHASED_WITHIN
    while (victims := below(os.getpid(), spare)) and time.monotonic() < give_up:
        for pid in victims:
            kill_with_group(pid)
        _chase(spare)
        time.sleep(0.01)
    for pid, state, parent in _processes():
        if state == "Z" and parent == os.getpid() and pid not in spare:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def kill_with_group(pid: int) -> None:
    """Kill a process and its group. The kernel does that at one moment: none of a group escapes by
    forking and ending all the time, as it does if processes are killed one after the other."""
    with suppress(ProcessLookupError, PermissionError):
        group = os.getpgid(pid)
        if group not in (0, 1, os.getpgrp()):
            os.killpg(group, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _chase(spare: frozenset[int]) -> None:
    """Kill adopted processes that come up, many times a second: what forks, ends and leaves its
    group all the time is another one before all processes are looked at."""
    for _ in range(_CHASES):
        adopted = [pid for pid in _adopted() if pid not in spare]
        if not adopted:
            return
        for pid in adopted:
            kill_with_group(pid)
        for pid in adopted:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _adopted() -> list[int]:
    """The children of this process, from a list that is short; none if the kernel has it not."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", "rb", buffering=0) as children:
                found += map(int, children.read().split())
    return found


class CannotStart(Exception):
    """The script cannot be run, here or elsewhere; `code` is what a shell would have ended with."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class RunningScript(Protocol):
    """A script that was started, wherever it runs.

    `output`: what it prints. `out_of_memory`: some of it was killed for that, as far as is known.
    """

    @property
    def output(self) -> IO[bytes]: ...

    @property
    def out_of_memory(self) -> bool: ...

    def wait(self, seconds: float) -> int | None:
        """Its exit code, as a shell would give it; None if it still runs after this long."""

    def end(self, grace: float) -> int | None:
        """Ask all of it to end, and kill what has not after the grace; its exit code."""

    def kill(self) -> None:
        """Kill what is left of it, whatever it was that stayed behind."""

    def used(self) -> float:
        """Seconds that processors have worked for it and for all that runs beside it."""


class Launch(Protocol):
    """Runs a script."""

    def __call__(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Callable[[], None],
    ) -> RunningScript:
        """Start it; raises CannotStart. `wake` is called when it has ended."""


def run_here(
    file: Path,
    workdir: Path,
    environment: Mapping[str, str],
    arguments: Sequence[str],
    wake: Callable[[], None],
) -> RunningScript:
    """As a process of this one; its end wakes us by a signal."""
    return Script(file, workdir, {**inherited(os.environ), **environment}, arguments)


class Script:
    """A running script in a session of its own; its output, both kinds, is one stream."""

    out_of_memory = False  # the kernel does not tell

    def __init__(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str] = (),
    ) -> None:
        self._guests = file.parent / GUESTS
        try:
            self._process = subprocess.Popen(
                [str(file), *arguments],
                cwd=workdir,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise cannot_start(file, error) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> IO[bytes]:
        """What it prints."""
        assert self._process.stdout is not None  # noqa: S101 -- asked for above
        return self._process.stdout

    def wait(self, seconds: float) -> int | None:
        """Its exit code, as a shell would give it; None if it still runs after this long."""
        self._reap_orphans()
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return 128 - code if code < 0 else code

    def _reap_orphans(self) -> None:
        """Bury adopted processes that ended, but not the script, whose exit code is wanted."""
        if sys.platform != "linux" or self._process.returncode is not None:
            return
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, look):
                if ended.si_pid == self._process.pid:
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)

    def end(self, grace: float) -> int | None:
        """Ask all of it to end, and kill what has not after the grace; its exit code."""
        give_up = time.monotonic() + grace
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self.wait(grace)
        # A shell dies at once, and what it started may still be storing a checkpoint.
        while self._group_lives() and time.monotonic() < give_up:
            time.sleep(0.02)
        self.kill()
        return self.wait(0)

    def _group_lives(self) -> bool:
        """Whether anything that was asked to end still runs, the script itself aside."""
        with suppress(ChildProcessError):
            while os.waitpid(-self._process.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def kill(self) -> None:
        """Kill what is left of it, whatever it was that stayed behind."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.wait(_KILLED_WITHIN)  # before it is reaped as one of the others
        kill_below()

    def used(self) -> float:
        """By what is below this process, and by commands beside the script."""
        guests = os.listdir(self._guests) if self._guests.is_dir() else []
        beside = [int(name) for name in guests if name.isdecimal()]
        pids = {each for pid in (os.getpid(), *beside) for each in (pid, *below(pid))}
        return sum(map(_used_by, pids - {os.getpid()}))


def cannot_start(file: Path, error: OSError) -> CannotStart:
    """Why a script that could not be run could not."""
    lines = Shared(file.parent).read(file.name).splitlines()
    first = lines[0].decode("utf-8", "replace") if lines else ""
    if error.errno == errno.ENOENT:
        program = first.removeprefix("#!").strip().partition(" ")[0]
        return CannotStart(
            f"could not run the script: {program}, from its first line, not found on this machine",
            _NOT_FOUND,
        )
    if error.errno == errno.E2BIG:
        return CannotStart(
            "could not run the script: its arguments and environment are too large", _NOT_RUNNABLE
        )
    return CannotStart(
        f"could not run the script: {error.strerror}; check its first line, {first}", _NOT_RUNNABLE
    )
