"""A process of this computer, with pipes or on a terminal, that somebody watches."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import struct
import subprocess
import termios
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sojourn.core.interfaces import Terminal

__all__ = ["Piped", "Shown", "start"]

_AT_ONCE = 1 << 16  # bytes
_LOOK = 0.1  # seconds between looks whether it has ended, should another one hold its output open
_CLOSED_WITHIN = 1.0  # seconds
# By a shell: its words and exit codes are known to all if a program cannot be run. And a terminal
# that the leader of a session opens is its own from then on.
_RUN = 'exec "$@"'
_RUN_SHOWN = 'tty=$1; shift; exec <"$tty" >"$tty" 2>&1; exec "$@"'
_END = b"\x04"  # what Ctrl-D gives


class _Input:
    """One end of something that one thread writes to and another may close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def write(self, data: bytes) -> None:
        with self._lock:
            if self._descriptor < 0:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            left = memoryview(data)
            while left:
                left = left[os.write(self._descriptor, left[:_AT_ONCE]) :]

    def close(self, within: float = -1) -> None:
        """Close it, unless somebody is stuck in writing to it for longer than this."""
        if self._lock.acquire(timeout=within):
            try:
                if self._descriptor >= 0:
                    os.close(self._descriptor)
                self._descriptor = -1
            finally:
                self._lock.release()


class _Process:
    """What both kinds have in common."""

    def __init__(self, started: subprocess.Popen[bytes], end: Callable[[int], None]) -> None:
        self._started = started
        self._end = end

    @property
    def pid(self) -> int:
        return self._started.pid

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self._started.poll() is None:
                os.killpg(self.pid, number)

    def wait(self) -> int:
        code = self._started.wait()
        return 128 - code if code < 0 else code

    def close(self) -> None:
        if self._started.poll() is None:
            self._end(self.pid)
            self._started.wait()

    def _read(self, streams: dict[int, int]) -> Iterator[tuple[int, bytes]]:
        """What comes from descriptors, by their streams, until they or the command have ended.

        What it left behind may hold them open for ever: that is not waited for.
        """
        poll = select.poll()
        for descriptor in streams:
            poll.register(descriptor, select.POLLIN)
        left = dict(streams)
        while left:
            over = self._started.poll() is not None  # looked at first: what it printed is there
            ready = poll.poll(_LOOK * 1000)
            if over and not any(events & select.POLLIN for _, events in ready):
                return
            for descriptor, _ in ready:
                if data := _read_some(descriptor):
                    yield left[descriptor], data
                else:
                    poll.unregister(descriptor)
                    del left[descriptor]


class Piped(_Process):
    """One with a pipe for each of its streams."""

    def __init__(self, started: subprocess.Popen[bytes], end: Callable[[int], None]) -> None:
        super().__init__(started, end)
        if not (started.stdin and started.stdout and started.stderr):
            raise ValueError("a process without pipes")
        self._input = _Input(os.dup(started.stdin.fileno()))
        started.stdin.close()
        self._out, self._err = started.stdout, started.stderr

    def write(self, data: bytes) -> None:
        self._input.write(data)

    def close_input(self) -> None:
        self._input.close()

    def output(self) -> Iterator[tuple[int, bytes]]:
        yield from self._read({self._out.fileno(): 1, self._err.fileno(): 2})

    def resize(self, rows: int, columns: int) -> None:
        """It has no terminal."""

    def close(self) -> None:
        super().close()
        self._input.close(_CLOSED_WITHIN)
        self._out.close()
        self._err.close()


class Shown(_Process):
    """One on a terminal; `terminal`: our side of it."""

    def __init__(
        self, started: subprocess.Popen[bytes], terminal: int, end: Callable[[int], None]
    ) -> None:
        super().__init__(started, end)
        self._terminal = terminal
        self._input = _Input(os.dup(terminal))
        self._written = b"\n"

    def write(self, data: bytes) -> None:
        self._written = data[-1:] or self._written
        try:
            self._input.write(data)
        except OSError as error:
            raise BrokenPipeError(error.errno, error.strerror) from error

    def close_input(self) -> None:
        """As Ctrl-D does: a line that has begun is given away first."""
        with suppress(OSError):
            self._input.write(_END if self._written == b"\n" else _END * 2)

    def output(self) -> Iterator[tuple[int, bytes]]:
        yield from self._read({self._terminal: 1})

    def resize(self, rows: int, columns: int) -> None:
        if self._terminal >= 0:
            size = struct.pack("HHHH", rows, columns, 0, 0)
            with suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def close(self) -> None:
        super().close()
        self._input.close(_CLOSED_WITHIN)
        if self._terminal >= 0:
            os.close(self._terminal)
        self._terminal = -1


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _AT_ONCE)
    except OSError as error:
        if error.errno == errno.EIO:  # a terminal that nobody has open any more, on Linux
            return b""
        raise


def start(
    command: Sequence[str],
    terminal: Terminal | None,
    end: Callable[[int], None],
    *,
    variables: Mapping[str, str],
    folder: Path,
) -> Piped | Shown:
    """Run a command in a session of its own. `end` kills that. May raise OSError."""
    pipe = subprocess.PIPE
    if terminal is None:
        return Piped(_popen(variables, folder, [_RUN, "sh", *command], pipe, pipe), end)
    ours, theirs = os.openpty()
    try:
        size = struct.pack("HHHH", terminal.rows, terminal.columns, 0, 0)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
        started = _popen(
            {**variables, "TERM": terminal.name},
            folder,
            [_RUN_SHOWN, "sh", os.ttyname(theirs), *command],
            subprocess.DEVNULL,
            theirs,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return Shown(started, ours, end)


def _popen(
    variables: Mapping[str, str], folder: Path, words: Sequence[str], stdin: int, output: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", *words],
        cwd=folder,
        env=dict(variables),
        stdin=stdin,
        stdout=output,
        stderr=output,
        start_new_session=True,
        bufsize=0,
    )
