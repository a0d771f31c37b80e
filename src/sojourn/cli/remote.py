"""Staying with a command on a machine: our streams, terminal and signals are its own."""

from __future__ import annotations

import os
import select
import signal
import termios
import threading
import tty
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from sojourn.cli.interrupts import insist, left_to_another
from sojourn.core.errors import Cancelled
from sojourn.core.interfaces import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import TypeAlias

    from sojourn.core.interfaces import RemoteProcess

    _Handlers: TypeAlias = dict[signal.Signals, Callable[[int, FrameType | None], None]]

__all__ = ["attend", "terminal_here"]

_STDIN, _STDOUT = 0, 1
_AT_ONCE = 1 << 16  # bytes
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PATIENCE = 3  # signals that are forwarded; one more kills the command


def terminal_here(wanted: bool | None) -> Terminal | None:
    """A terminal like ours for a command; None if it is to have none.

    `wanted`: whether the user asked for one; None if nobody said, and it depends on ours.
    """
    if wanted is None:
        wanted = os.isatty(_STDIN) and os.isatty(_STDOUT)
    if not wanted:
        return None
    rows, columns = _size() or (24, 80)
    return Terminal(rows, columns, os.environ.get("TERM") or "xterm")


def _size() -> tuple[int, int] | None:
    for descriptor in (_STDOUT, _STDIN):
        with suppress(OSError):
            size = os.get_terminal_size(descriptor)
            if size.lines and size.columns:
                return size.lines, size.columns
    return None


def attend(process: RemoteProcess, *, shown: bool) -> int:
    """Stay with a command to its end; returns its exit code. `shown`: it has a terminal."""
    signals = _Signals(process)
    try:
        with signals.on_terminal() if shown and os.isatty(_STDIN) else signals.forwarded():
            _aside("input", lambda: _feed(process))
            for stream, data in process.output():
                _write(stream, data)
            return process.wait()
    finally:
        process.close()


def _aside(name: str, work: Callable[[], None]) -> None:
    """Nobody waits for it: it may be reading what never comes."""
    threading.Thread(target=work, name=f"sojourn-{name}", daemon=True).start()


def _feed(process: RemoteProcess) -> None:
    with suppress(OSError):  # it reads no more, or our own input is gone
        while data := _read(_STDIN):
            process.write(data)
    with suppress(OSError):
        process.close_input()


def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, _AT_ONCE)
        except BlockingIOError:  # whoever shares it with us has made it so
            select.select([descriptor], [], [])


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


class _Signals:
    """What becomes of signals to us while a command runs on a machine.

    They are passed on by a thread: a handler may interrupt whatever the main thread does just now.
    """

    def __init__(self, process: RemoteProcess) -> None:
        self._process = process
        self._orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._count = 0

    @contextmanager
    def forwarded(self) -> Iterator[None]:
        """The command gets them, and decides what to do about them."""
        with self._handling(dict.fromkeys(_ENDING, self._forward)):
            yield

    @contextmanager
    def on_terminal(self) -> Iterator[None]:
        """Keys go to the command as they are, and so does the size of the window.

        A signal comes from elsewhere then: it ends this, and the terminal is as it was before.
        """
        before = termios.tcgetattr(_STDIN)

        def restore() -> None:
            with suppress(termios.error):  # the window was closed
                termios.tcsetattr(_STDIN, termios.TCSADRAIN, before)

        def suspend(number: int, frame: FrameType | None) -> None:
            restore()
            os.kill(os.getpid(), signal.SIGSTOP)
            tty.setraw(_STDIN, termios.TCSADRAIN)
            self._resize()

        handlers: _Handlers = dict.fromkeys(_ENDING, self._end)
        handlers |= {signal.SIGWINCH: lambda *_: self._resize(), signal.SIGTSTP: suspend}
        with self._handling(handlers):
            try:
                tty.setraw(_STDIN, termios.TCSADRAIN)
                self._resize()  # it may have changed since
                yield
            finally:
                try:
                    restore()
                finally:
                    restore()  # should the first one have been interrupted; a second never is

    @contextmanager
    def _handling(self, handlers: _Handlers) -> Iterator[None]:
        _aside("signals", self._carry_out)
        before = {
            number: signal.signal(number, handler)
            for number, handler in handlers.items()
            if signal.getsignal(number) is not signal.SIG_IGN  # as `nohup` has it
        }
        try:
            with left_to_another():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _carry_out(self) -> None:
        while True:
            order = self._orders.get()
            with suppress(OSError):
                order()

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > _PATIENCE:
            self._end(number, frame)
        self._orders.put(lambda: self._process.signal(number))

    def _end(self, number: int, frame: FrameType | None) -> None:
        for each in _ENDING:
            signal.signal(each, signal.SIG_IGN)
        insist()
        raise Cancelled("Disconnected; the command was killed")

    def _resize(self) -> None:
        size = _size()
        if size:
            self._orders.put(lambda: self._process.resize(*size))
