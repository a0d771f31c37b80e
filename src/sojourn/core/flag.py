"""An event that a signal handler may set."""

from __future__ import annotations

import threading

__all__ = ["Flag"]


class Flag(threading.Event):
    """Like its base, but a handler that interrupts a thread's own `wait` may set it.

    The lock of `threading.Event` cannot be taken twice by one thread: such a handler would wait
    for itself without end. Here it may; at worst the interrupted wait lasts until its timeout.
    """

    def __init__(self) -> None:
        super().__init__()
        self._value = False
        self._changed = threading.Condition(threading.RLock())

    def is_set(self) -> bool:
        return self._value

    def set(self) -> None:
        self._value = True
        with self._changed:
            self._changed.notify_all()

    def clear(self) -> None:
        self._value = False

    def wait(self, timeout: float | None = None) -> bool:
        with self._changed:
            return self._changed.wait_for(self.is_set, timeout)
