"""Ctrl-C and SIGTERM, from the first moment of a command to its last.

A command ends in an orderly way when its main thread next looks at its context. Some calls do not
let it look: a name that does not resolve, an SDK that tries again and again, a reader that takes
nothing. A thread hears of signals at once (`signal.set_wakeup_fd`), gives the main thread a little
time, and then ends the process. What is undone if it cannot be finished gets all the time it needs,
unless the user asks three times.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Protocol

    class Listener(Protocol):
        """A command that hears signals."""

        def on_signal(self, number: int, frame: FrameType | None) -> None:
            """Ask its main thread to end; runs in that thread."""

        def may_end(self) -> bool:
            """Whether it can be ended at this point. Called by another thread."""

        def last_words(self) -> tuple[int, bytes]:
            """What it says if it has to be ended, and the stream. Called by another thread."""


__all__ = [
    "INTERRUPTED",
    "answered",
    "ignored",
    "insist",
    "left_to_another",
    "listening",
    "watching",
]

INTERRUPTED = 130  # the exit code
AT_ONCE = 3  # times Ctrl-C: ends a command whatever it is doing
_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_PATIENCE = 2.0  # seconds for the main thread to end by itself
_LAST_PATIENCE = 0.5  # after the last signal
_LOOK_EVERY = 0.1
_ANSWERED = 255  # beside the numbers of signals in the pipe


class _Watch:
    """The signals of one process. The handlers run in its main thread, `run` in another."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.unanswered: list[int] = []
        self._begun = False
        self.over = False  # the command has ended, and the process does so soon
        self.elsewhere = False  # whether signals are for somebody else
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self.handle) for number in _NUMBERS}
        self._descriptor = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        threading.Thread(target=self.run, name="sojourn-interrupts", daemon=True).start()

    def __exit__(self, *_: object) -> None:
        if self.over:
            return  # it is heard to the very end
        for number, handler in self._before.items():
            # Another Ctrl-C must not cut off the last words.
            signal.signal(number, signal.SIG_IGN if self.unanswered else handler)
        signal.set_wakeup_fd(self._descriptor)
        if not self.unanswered:
            os.close(self._writing)  # which ends the thread; else it watches to the very end

    def begin(self) -> None:
        """From now on a signal that no listener hears raises KeyboardInterrupt.

        One that came before raises it here, where its caller is ready for it.
        """
        self._begun = True
        if self.unanswered:
            raise KeyboardInterrupt

    def handle(self, number: int, frame: FrameType | None) -> None:
        first = not self.unanswered
        self.unanswered.append(number)
        if self.listener:
            self.listener.on_signal(number, frame)
        elif first and self._begun and not self.over:
            raise KeyboardInterrupt

    def tell(self, number: int) -> None:
        with suppress(OSError):
            os.write(self._writing, bytes([number]))

    def run(self) -> None:
        pressed, give_up = 0, float("inf")
        while (told := self._told(give_up)) is not None:
            now = time.monotonic()
            if told == _ANSWERED:
                pressed, give_up = 0, float("inf")
            elif told in _NUMBERS and not self.elsewhere:
                pressed += told == signal.SIGINT  # `timeout` sends SIGTERM more than once
                give_up = min(give_up, now + (_LAST_PATIENCE if pressed >= AT_ONCE else _PATIENCE))
            if give_up < float("inf") and pressed < AT_ONCE and self._must_finish():
                give_up = now + _PATIENCE
            if now > give_up:
                self._end()
        os.close(self._reading)

    def _must_finish(self) -> bool:
        return self.listener is not None and not self.listener.may_end()

    def _told(self, give_up: float) -> int | None:
        """What comes next through the pipe; 0 if nothing did for a moment, None at its end."""
        patience = None if give_up == float("inf") else _LOOK_EVERY
        if not select.select([self._reading], [], [], patience)[0]:
            return 0
        data = os.read(self._reading, 1)
        return data[0] if data else None

    def _end(self) -> None:
        if self.listener:
            stream, words = self.listener.last_words()
            if select.select([], [stream], [], 0)[1]:
                with suppress(OSError):
                    os.write(stream, words)
        os._exit(INTERRUPTED)


_watch: _Watch | None = None


@contextmanager
def watching() -> Iterator[_Watch]:
    """Signals are heard meanwhile. For the main thread; within another one, nothing changes."""
    global _watch
    if _watch is not None:
        yield _watch
        return
    _watch = watch = _Watch()
    try:
        with watch:
            yield watch
    finally:
        _watch = None


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """This command hears signals meanwhile, also what came before and nobody heard."""
    with watching() as watch:
        watch.listener = listener
        try:
            for number in watch.unanswered[-1:]:
                listener.on_signal(number, None)
            yield
        finally:
            watch.listener = None


def ignored() -> None:
    """Signals do nothing any more: for the very last moment.

    Python gives them back their defaults as it ends, so that one more would be the exit code.
    """
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_IGN)


def answered() -> None:
    """The command goes on after the signals so far, which asked for something else than its end."""
    if _watch:
        _watch.unanswered.clear()
        _watch.tell(_ANSWERED)


@contextmanager
def left_to_another() -> Iterator[None]:
    """Signals are for a program elsewhere meanwhile, until `insist`."""
    if _watch:
        _watch.elsewhere = True
    try:
        yield
    finally:
        if _watch:
            _watch.elsewhere = False


def insist() -> None:
    """The command ends now, or is ended soon."""
    if _watch:
        _watch.elsewhere = False
        _watch.unanswered.append(signal.SIGTERM)
        _watch.tell(signal.SIGTERM)
