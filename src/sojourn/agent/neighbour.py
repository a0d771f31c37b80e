"""A script that runs in another container, beside the agent's: in an image that has no agent.

A shell program there starts it and tells how it ended, through pipes in a folder of both. Whatever
comes through them was written by the script's side, so only a few known words count.
"""

from __future__ import annotations

import errno
import io
import os
import queue
import shlex
import stat
import threading
import time
from contextlib import suppress
from importlib import resources
from typing import IO, TYPE_CHECKING

from sojourn.agent.background import aside, say
from sojourn.agent.inside import INSIDE, inside
from sojourn.agent.process import cannot_start
from sojourn.agent.shared import Shared
from sojourn.core.errors import Transient
from sojourn.storage.beneath import Beneath, let_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Neighbour", "NeighbourScript", "launcher"]

_RUN_HERE = "run"
_RUN = "/sojourn/run"  # where the launcher expects it
_PIPES = ("control", "status", "output", "printed")
_READY = "ready"  # a pipe, too: it is there when all others are
_WORDS = ("started", "cannot", "alive", "ended")
_OURS = 1  # process there that is not the script's
_KILLED_WITHIN = 10.0  # seconds
_STARTED_WITHIN = 60.0
_ASK_EVERY = 1.0
_ENDED_EVERY = 0.1
_LOOK_EVERY = 0.05
_LONGEST_LINE = 200
_UNHEARD = 1000  # words; a script that floods the pipe has to wait
_LONGEST_INTERPRETER = 255  # bytes of a first line that Linux looks at
_PRINTED_WITHIN = 5.0  # seconds for its log to take what a full pipe has no room for
# A container that is gone without a word was killed: for lack of memory, if not with all the pod.
_PRESUMED_DEAD = 3.0
_KILLED = 137


def launcher(folder: Path) -> str:
    """The shell program for the other container, which has the folder at the same path."""
    text = resources.files("sojourn.agent").joinpath("launcher.sh").read_text()
    return text.replace(_RUN, f"{folder}/run")


class Neighbour:
    """The container of the script. `folder` is what both see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = folder / _RUN_HERE
        self._messages: queue.Queue[list[str]] = queue.Queue(_UNHEARD)
        self._here = threading.Event()
        self._owner = (os.geteuid(), os.getegid())
        self._control = -1
        self._output = -1
        self._printed: _Printed | None = None
        self.used = False  # it runs one script and no other

    def prepare(self) -> None:
        """Make the pipes; the other side waits for them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        Shared(self._folder).make(_RUN_HERE, 0o755)
        with Beneath(self._run, strict=True) as there:
            folder = there.folder("")
            for name in _PIPES:
                _make_pipe(folder, name)
            self._control = _open_pipe(folder, "control", os.O_RDWR)
            self._printed = _Printed(_open_pipe(folder, "printed", os.O_RDWR))
            self._output = _open_pipe(folder, "output", os.O_RDONLY)
            status = _open_pipe(folder, "status", os.O_RDONLY)
            aside("neighbour", lambda: self._listen(status))
            _make_pipe(folder, _READY)

    def wait(self, seconds: float) -> bool:
        """Whether the other container is there, after this long at most."""
        return self._here.wait(seconds)

    def end(self) -> None:
        """Let the other container go, once its log has all that was printed."""
        if self._printed is not None:
            self._printed.close()
        self.say("end")

    def say(self, word: str) -> None:
        with suppress(OSError):
            os.write(self._control, f"{word}\n".encode("utf-8", "surrogateescape"))

    def start(
        self,
        file: Path,
        workdir: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        wake: Callable[[], None],
    ) -> NeighbourScript:
        """Run a script there, once."""
        if self.used:
            raise Transient("The container of the script has run it already")
        self.used = True
        self._hide_pipes()
        _give(self._folder, workdir, self._owner)
        with Beneath(file.parent, strict=True) as there:
            let_in(*there.within(file.name), 0o755)
        self._write(INSIDE, inside(workdir, environment))
        command = shlex.join([str(file), *arguments])
        self._write("begin", f"set -- {command}\n. {shlex.quote(str(self._run / INSIDE))}\n")
        os.set_blocking(self._output, True)
        assert self._printed is not None  # noqa: S101 -- prepared before
        output = _Output(self._output, self._printed)
        script = NeighbourScript(self, output, self._messages, wake)
        interpreter = _interpreter(file)
        self.say(f"start {interpreter}" if interpreter else "start")
        try:
            script.begin(file)
        except BaseException:
            script.output.close()
            raise
        return script

    def _hide_pipes(self) -> None:
        """Both sides have them open: the script must neither find nor remove them."""
        for name in (*_PIPES, _READY):
            Shared(self._run).remove(name)

    def _write(self, name: str, text: str) -> None:
        """For the script's user to read and for nobody else, if we can give it away."""
        ours = self._owner[0] == os.geteuid()
        mode = 0o600 if ours or os.geteuid() == 0 else 0o644
        Shared(self._run).write(name, text.encode("utf-8", "surrogateescape"), mode)
        if not ours and os.geteuid() == 0:
            with Beneath(self._run, strict=True) as there:
                folder, _ = there.within(name)
                os.chown(name, *self._owner, dir_fd=folder, follow_symlinks=False)

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
                os.close(status)
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
        elif words and words[0] in _WORDS:
            self._messages.put(words)


class NeighbourScript:
    """A script that runs there; `Script` is one that runs here."""

    def __init__(
        self,
        neighbour: Neighbour,
        output: IO[bytes],
        messages: queue.Queue[list[str]],
        wake: Callable[[], None],
    ) -> None:
        self._neighbour = neighbour
        self._messages = messages
        self._wake = wake
        self._code: int | None = None
        self._alive = 0
        self._used = 0.0
        self._counted = threading.Event()
        self.output = output
        self.out_of_memory = False
        self._started = threading.Event()
        self._began = False
        self._refused = False
        self._gone = False

    def begin(self, file: Path) -> None:
        """Until it runs; raises CannotStart."""
        aside("neighbour's script", self._listen)
        if not self._started.wait(_STARTED_WITHIN):
            raise Transient("The container of the script does not respond")
        if self._refused:
            raise cannot_start(file, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
        if not self._began:
            raise Transient("The container of the script ended before the script began")

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
        while time.monotonic() < give_up and self._lives(give_up):
            time.sleep(_LOOK_EVERY)
        self.kill()
        return self.wait(0)

    def kill(self) -> None:
        """Kill what is left of it, whatever it was that stayed behind."""
        give_up = time.monotonic() + _KILLED_WITHIN
        while not self._gone and time.monotonic() < give_up:
            self._neighbour.say("KILL")
            if not self._lives(min(give_up, time.monotonic() + _ASK_EVERY)):
                break
        self.wait(max(0.0, give_up - time.monotonic()))

    def used(self) -> float:
        """Without an answer: as much as before."""
        self._lives(time.monotonic() + _ASK_EVERY)
        return self._used

    def _lives(self, give_up: float) -> bool:
        """Whether anything of it does. Without an answer by then: it may."""
        while not self._gone and time.monotonic() < give_up:
            self._counted.clear()
            self._neighbour.say("count")
            if self._counted.wait(min(_ASK_EVERY, max(0.0, give_up - time.monotonic()))):
                return not self._gone and self._alive > _OURS
        return not self._gone

    def _listen(self) -> None:
        while True:
            words = self._next()
            numbers = [int(word) for word in words[1:] if word.isdecimal()]
            if words[0] == "started":
                self._began = True
                self._started.set()
            elif words[0] == "cannot":
                self._refused = True
                self._started.set()
            elif words[0] == "alive" and numbers:
                self._alive = numbers[0]
                self._used = numbers[-1] / 1e6 if len(numbers) > 1 else 0.0
                self._counted.set()
            elif words[0] == "ended" and numbers:
                self.out_of_memory = len(numbers) > 1 and numbers[1] > 0
                self._ended(numbers[0] & 0xFF)
            elif words[0] == "gone":
                self._vanished()
                return

    def _next(self) -> list[str]:
        """The other side tells of the script's end only when it is asked."""
        while True:
            try:
                return self._messages.get(timeout=_ENDED_EVERY if self._code is None else None)
            except queue.Empty:
                self._neighbour.say("look")

    def _ended(self, code: int) -> None:
        if self._code is None:
            self._code = code
        self._wake()

    def _vanished(self) -> None:
        self._gone = True
        self._started.set()
        self._counted.set()
        if self._code is None and self._began:
            say("the container of the script is gone")
            time.sleep(_PRESUMED_DEAD)  # the whole pod may be on its way out
            self.out_of_memory = True
            self._ended(_KILLED)


class _Printed:
    """The pipe back to the script's container, whose own log has what the script prints, too.

    That log is a copy for people who look at the container. One that takes nothing is given up.
    """

    def __init__(self, pipe: int) -> None:
        self._lock = threading.Lock()
        self._pipe = pipe

    def write(self, data: bytes) -> None:
        with self._lock:
            left, give_up = memoryview(data), time.monotonic() + _PRINTED_WITHIN
            while left and self._pipe >= 0:
                try:
                    left = left[os.write(self._pipe, left) :]
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        say("the log of the script's container takes no more output")
                        self._close()
                    time.sleep(_LOOK_EVERY)

    def close(self) -> None:
        """From now on, nothing is printed."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1


class _Output(io.FileIO):
    """What the script prints; whatever is read goes to the log of its container as well."""

    def __init__(self, pipe: int, printed: _Printed) -> None:
        super().__init__(pipe, "rb")
        self._printed = printed

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._printed.write(data)
        return data


def _interpreter(file: Path) -> str:
    """Of its first line, if it is a path; Linux splits it at spaces and tabs."""
    first = Shared(file.parent).read(file.name).partition(b"\n")[0]
    if len(first) > _LONGEST_INTERPRETER or not first.startswith(b"#!"):
        return ""
    words = first[2:].decode("utf-8", "surrogateescape").split()
    return words[0] if words and words[0].startswith("/") else ""


def _make_pipe(folder: int, name: str) -> None:
    """For the script's user, who may be another; in place of whatever else has this name."""
    try:
        os.mkfifo(name, dir_fd=folder)
    except FileExistsError:
        if not stat.S_ISFIFO(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
            os.mkfifo(name, dir_fd=folder)
    let_in(folder, name, 0o666)


def _open_pipe(folder: int, name: str, how: int) -> int:
    """A pipe, and nothing else that may have its name by now."""
    flags = how | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    found = os.open(name, flags, dir_fd=folder)
    if not stat.S_ISFIFO(os.fstat(found).st_mode):
        os.close(found)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    return found


def _give(folder: Path, workdir: Path, owner: tuple[int, int]) -> None:
    """Have the workdir belong to the script's user. Nothing of the script runs yet."""
    if owner[0] == os.geteuid():
        return
    if os.geteuid() != 0:
        _open_to_all(workdir)
        return
    with Beneath(workdir, strict=True) as there:
        for path, items in there.walk():
            here = there.folder(path)
            for item in items:
                os.chown(item.name, *owner, dir_fd=here, follow_symlinks=False)
        os.chown(there.folder(""), *owner)
    with Beneath(folder) as there:
        os.fchmod(there.folder(""), 0o755)


def _open_to_all(workdir: Path) -> None:
    """We cannot give it away; only this pod has it."""
    with Beneath(workdir, strict=True) as there:
        for path, items in there.walk():
            here = there.folder(path)
            os.fchmod(here, 0o777)
            for item in items:
                if item.is_file(follow_symlinks=False):
                    mode = item.stat(follow_symlinks=False).st_mode
                    let_in(here, item.name, 0o777 if mode & 0o100 else 0o666)
