"""A script that runs in another container, beside the agent's: in an image that has no agent.

A shell program there starts it and tells how it ended, through pipes in a folder of both. Whatever
comes through them was written by the script's side, so only a few known words count.
"""

from __future__ import annotations

import errno
import os
import queue
import shlex
import threading
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from sojourn.agent.background import aside, say
from sojourn.agent.process import cannot_start
from sojourn.core.errors import Transient

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Neighbour", "NeighbourScript"]

_PIPES = ("control", "status", "output")
_OURS = 2  # processes there that are not the script's
_KILLED_WITHIN = 10.0  # seconds
_STARTED_WITHIN = 60.0
_LOOK_EVERY = 0.05
_LONGEST_LINE = 200
# A container that is gone without a word was killed: for lack of memory, if not with all the pod.
_PRESUMED_DEAD = 3.0
_KILLED = 137


class Neighbour:
    """The container of the script. `folder` is what both see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = folder / "run"
        self._messages: queue.Queue[list[str]] = queue.Queue()
        self._here = threading.Event()
        self._owner = (os.geteuid(), os.getegid())
        self._control = -1
        self._output = -1

    def prepare(self) -> None:
        """Make the pipes; the other side waits for them."""
        self._run.mkdir(mode=0o755, parents=True, exist_ok=True)
        for name in _PIPES:
            _make_pipe(self._run / name)
        self._control = os.open(self._run / "control", os.O_RDWR | os.O_CLOEXEC)
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        self._output = os.open(self._run / "output", flags)
        status = os.open(self._run / "status", flags)
        aside("neighbour", lambda: self._listen(status))
        _make_pipe(self._run / "ready")

    def wait(self, seconds: float) -> bool:
        """Whether the other container is there, after this long at most."""
        return self._here.wait(seconds)

    def end(self) -> None:
        """Let the other container go."""
        self.say("end")

    def say(self, word: str) -> None:
        with suppress(OSError):
            os.write(self._control, f"{word}\n".encode())

    def start(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Callable[[], None],
    ) -> NeighbourScript:
        """Run a script there, once."""
        _give(self._folder, workdir, self._owner)
        file.chmod(0o755)
        lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
        self._write("environment", "\n".join(lines) + "\n")
        self._write("arguments", f"exec {shlex.join([str(file), *arguments])}\n")
        os.set_blocking(self._output, True)
        script = NeighbourScript(self, self._output, self._messages, wake)
        first = file.read_bytes().partition(b"\n")[0].decode("utf-8", "replace")
        interpreter = first.removeprefix("#!").strip().split(" ")[0]
        self.say(f"start {interpreter}" if interpreter.startswith("/") else "start")
        script.begin(file)
        return script

    def _write(self, name: str, text: str) -> None:
        """For the script's user to read and for nobody else."""
        path = self._run / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        if self._owner[0] != os.geteuid():
            os.chown(path, *self._owner)

    def _listen(self, status: int) -> None:
        """Take what the other side says. Until it opens its end, there is nothing to read."""
        rest = b""
        while True:
            try:
                data = os.read(status, 4096)
            except BlockingIOError:
                time.sleep(_LOOK_EVERY)
                continue
            if not data and not self._here.is_set():
                time.sleep(_LOOK_EVERY)
                continue
            if not data:
                break
            os.set_blocking(status, True)
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-_LONGEST_LINE:]
            for line in lines:
                self._hear(line[:_LONGEST_LINE].decode("ascii", "replace").split())
        self._messages.put(["gone"])

    def _hear(self, words: list[str]) -> None:
        if len(words) == 3 and words[0] == "ready":
            with suppress(ValueError):
                self._owner = (int(words[1]), int(words[2]))
            self._here.set()
        elif words:
            self._messages.put(words)


class NeighbourScript:
    """A script that runs there; `Script` is one that runs here."""

    def __init__(
        self,
        neighbour: Neighbour,
        output: int,
        messages: queue.Queue[list[str]],
        wake: Callable[[], None],
    ) -> None:
        self._neighbour = neighbour
        self._messages = messages
        self._wake = wake
        self._code: int | None = None
        self._alive = 0
        self._counted = threading.Event()
        self.output: IO[bytes] = os.fdopen(output, "rb", buffering=0)
        self.out_of_memory = False
        self._started = threading.Event()
        self._refused = 0
        self._gone = False

    def begin(self, file: Path) -> None:
        """Until it runs; raises CannotStart."""
        aside("neighbour's script", self._listen)
        if not self._started.wait(_STARTED_WITHIN):
            raise Transient("The container of the script does not respond")
        if self._refused:
            raise cannot_start(file, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))

    def wait(self, seconds: float) -> int | None:
        """Its exit code; None if it still runs after this long."""
        give_up = time.monotonic() + seconds
        while self._code is None and time.monotonic() < give_up:
            time.sleep(_LOOK_EVERY)
        return self._code

    def end(self, grace: float) -> int | None:
        """Ask all of it to end, and kill what has not after the grace; its exit code."""
        give_up = time.monotonic() + grace
        self._neighbour.say("TERM")
        while self._lives() and time.monotonic() < give_up:
            time.sleep(_LOOK_EVERY)
        self.kill()
        return self.wait(0)

    def kill(self) -> None:
        """Kill what is left of it, whatever it was that stayed behind."""
        give_up = time.monotonic() + _KILLED_WITHIN
        while not self._gone and time.monotonic() < give_up:
            self._neighbour.say("KILL")
            if not self._lives():
                break
        self.wait(max(0.0, give_up - time.monotonic()))

    def _lives(self) -> bool:
        """Whether anything of it does."""
        if self._gone:
            return False
        self._counted.clear()
        self._neighbour.say("count")
        return self._counted.wait(_KILLED_WITHIN) and self._alive > _OURS

    def _listen(self) -> None:
        while True:
            words = self._messages.get()
            numbers = [int(word) for word in words[1:] if word.isdecimal()]
            if words[0] == "started":
                self._started.set()
            elif words[0] == "cannot":
                self._refused = 1
                self._started.set()
            elif words[0] == "alive" and numbers:
                self._alive = numbers[0]
                self._counted.set()
            elif words[0] == "ended" and numbers:
                self.out_of_memory = len(numbers) > 1 and numbers[1] > 0
                self._ended(numbers[0] & 0xFF)
            elif words[0] == "gone":
                self._vanished()
                return

    def _ended(self, code: int) -> None:
        if self._code is None:
            self._code = code
        self._wake()

    def _vanished(self) -> None:
        self._gone = True
        self._started.set()
        self._counted.set()
        if self._code is None:
            say("the container of the script is gone")
            time.sleep(_PRESUMED_DEAD)  # the whole pod may be on its way out
            self.out_of_memory = True
            self._ended(_KILLED)


def _make_pipe(path: Path) -> None:
    """For the script's user, who may be another."""
    with suppress(FileExistsError):
        os.mkfifo(path)
    path.chmod(0o666)


def _give(folder: Path, workdir: Path, owner: tuple[int, int]) -> None:
    """Have the workdir belong to the script's user. Nothing of the script runs yet."""
    if owner[0] == os.geteuid() or os.geteuid() != 0:
        return
    for root, folders, files, descriptor in os.fwalk(workdir):
        for name in (*folders, *files):
            os.chown(name, *owner, dir_fd=descriptor, follow_symlinks=False)
        if root == str(workdir):
            os.chown(workdir, *owner)
    folder.chmod(0o755)
