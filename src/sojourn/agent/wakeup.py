"""Waiting without looking all the time: for a signal, the end of a child, or whoever calls."""

from __future__ import annotations

import os
import select
import signal
from contextlib import suppress

__all__ = ["Wakeup"]


class Wakeup:
    """Ends a wait of the main thread; what comes while nobody waits ends the next one."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)

    def on_signals(self, *numbers: signal.Signals) -> None:
        """Wake on these and on all that have a handler; the main thread's to call."""
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, lambda *_: None)

    def wake(self) -> None:
        """From any thread, or a signal handler."""
        with suppress(BlockingIOError):  # it is full: whoever waits is woken already
            os.write(self._writing, b"\0")

    def wait(self, seconds: float) -> None:
        """Return when woken, or after this long."""
        select.select([self._reading], [], [], max(0.0, seconds))
        with suppress(BlockingIOError):
            while os.read(self._reading, 1024):
                pass
