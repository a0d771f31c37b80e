"""A call under way: its answer as it comes in, and who waits for it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from sojourn.storage.failures import damaged
from sojourn.storage.served.frames import BrokenFrame, Frame, Kind
from sojourn.storage.served.messages import error_from, text_from

if TYPE_CHECKING:
    from sojourn.core.errors import SojournError

__all__ = ["Answer", "Call", "Lost"]


class Lost(Exception):
    """The connection is gone, and nobody knows what became of the call."""


class Answer:
    """What a call brought: a body, what was said of it, and a result."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.body = bytearray()
        self.result: Any = None


class Call:
    """The connection's reader takes frames; one other thread waits.

    `most`: bytes that the body of the answer may have.
    """

    def __init__(self, most: int) -> None:
        self.moved = time.monotonic()  # when something of it came or went
        self._most = most
        self._answer = Answer()
        self._filled = 0
        self._error: SojournError | Lost | None = None
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether there is an answer, or will be none."""
        return self._done.is_set()

    def take(self, frame: Frame) -> bool:
        """Take a part of the answer; True if it is complete. Raises BrokenFrame, ValueError."""
        self.moved = time.monotonic()
        if frame.kind == Kind.DATA:
            end = self._filled + len(frame.body)
            if end > len(self._answer.body):
                raise BrokenFrame("an answer is longer than announced")
            self._answer.body[self._filled : end] = frame.body
            self._filled = end
            return False
        said = text_from(frame.body)
        if frame.kind == Kind.BEGIN:
            size = said.get("size")
            if type(size) is not int or size < 0:
                raise BrokenFrame("an answer has no size")
            if size > self._most:  # a server of an older version does not know how much we take
                self._error = damaged("An object", f"too large ({size:,} bytes)")
                self._done.set()
                return True
            self._answer.said = said
            self._answer.body = bytearray(size)
            return False
        if frame.kind == Kind.DONE:
            if self._filled != len(self._answer.body):
                raise BrokenFrame("an answer is shorter than announced")
            self._answer.result = said.get("result")
        else:
            self._error = error_from(said)
        self._done.set()
        return True

    def lose(self, why: Lost) -> None:
        """There will be no answer."""
        if not self._done.is_set():
            self._error = why
            self._done.set()

    def wait(self, patience: float) -> Answer | None:
        """The answer; raises its error. None if nothing of it moved for so many seconds."""
        while not self._done.wait(max(0.0, self.moved + patience - time.monotonic())):
            if time.monotonic() >= self.moved + patience:
                return None
        if isinstance(self._error, Lost):
            raise Lost(str(self._error))  # several threads get the same one
        if self._error is not None:
            raise self._error
        return self._answer
