"""The only threads of the agent: small chores that go on while the script runs."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Chore", "aside", "say"]


def say(message: str) -> None:
    """Tell something to whoever looks after the machine; the script's log is not for this.

    On one line: the last one is what people get to see of a machine that was lost.
    """
    line = ". ".join(message.splitlines())
    print(f"sojourn agent: {line}", file=sys.stderr, flush=True)  # noqa: T201


def aside(name: str, work: Callable[[], None]) -> threading.Thread:
    """Do something once, beside everything else; it does not keep the agent alive."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


_AFTER_ERROR = 1.0  # seconds; a store that is out of reach is not asked without end


class Chore:
    """Does something again and again until it is stopped.

    `pause` waits between two rounds and gets the event that ends the wait early. An error is
    told and the chore goes on: a store that is out of reach now may be back in the next round.
    `outcome` is told how each round went.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], None],
        pause: Callable[[threading.Event], object],
        outcome: Callable[[Exception | None], None] | None = None,
    ) -> None:
        self._name = name
        self._work = work
        self._pause = pause
        self._outcome = outcome or (lambda _: None)
        self._said = ""
        self._stopping = False
        self._stirred = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> Chore:
        """Begin, after one pause."""
        self._thread.start()
        return self

    def soon(self) -> None:
        """Have a round now, whatever the pause."""
        self._stirred.set()

    def stop(self) -> None:
        """End after the round that is under way."""
        self._stopping = True
        self._stirred.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._pause(self._stirred)
            self._stirred.clear()
            if self._stopping:  # looked at last: it is set before the event is
                return
            try:
                self._work()
                self._outcome(None)
                self._said = ""
            except Exception as error:
                # Whatever it is, the script's next snapshot must not depend on it.
                self._outcome(error)
                self._say_once(f"{self._name}: {error or type(error).__name__}")
                self._stirred.wait(_AFTER_ERROR)

    def _say_once(self, message: str) -> None:
        """A store that is full for days must not fill the machine's disk as well."""
        if message != self._said:
            self._said = message
            say(message)
