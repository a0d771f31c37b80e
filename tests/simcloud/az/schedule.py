"""Does things when their time has come, in one thread, with the account's lock held.

What is done does not belong here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from tests.simcloud.common.clock import Clock

_LONGEST = 1.0


@dataclass
class _Entry:
    due: float
    ready: Callable[[], bool]
    do: Callable[[], None]


class Schedule:
    """What is still to be done. Its methods are called with the lock held."""

    def __init__(
        self,
        changed: threading.Condition,
        clock: Clock,
        defects: list[BaseException],
    ) -> None:
        self._changed = changed
        self._clock = clock
        self._defects = defects
        self._entries: list[_Entry] = []
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)

    def after(
        self,
        seconds: float,
        do: Callable[[], None],
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        """Do this when so much time has passed and it is ready."""
        self._entries.append(_Entry(self._clock.now() + seconds, ready, do))
        self._changed.notify_all()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                if not self._do_next():
                    self._changed.wait(self._left())

    def _do_next(self) -> bool:
        """Do the first thing that can be done, in the order in which they came."""
        now = self._clock.now()
        for entry in self._entries:
            if entry.due <= now and entry.ready():
                self._entries.remove(entry)
                try:
                    entry.do()
                except Exception as error:
                    self._defects.append(error)
                self._changed.notify_all()
                return True
        return False

    def _left(self) -> float:
        """Until the next thing is due; what is due and not ready waits for a change."""
        now = self._clock.now()
        return min((e.due - now for e in self._entries if e.due > now), default=_LONGEST)
