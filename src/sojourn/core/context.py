"""What is passed first to all that takes time: where to tell, and when to stop."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.core.errors import Cancelled, Transient
from sojourn.core.events import Emit, Event, Note, Progress, StepEnded, StepStarted, Warned
from sojourn.core.flag import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Context"]

_Event = TypeVar("_Event", bound=Event)


def _ignore(_: Event) -> None:
    pass


class _InTurn:
    """Hands events on one after the other, though resources are made at the same time."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._turn = threading.RLock()

    def __call__(self, event: Event) -> None:
        with self._turn:
            self._emit(event)


class Context:
    """Carries events out, and cancellation and a deadline in.

    `emit` is never called twice at once. `deadline` is a `time.monotonic()` value. A context made
    by `within` shares the cancellation of the one it came from.
    """

    def __init__(
        self,
        emit: Emit = _ignore,
        *,
        deadline: float = float("inf"),
        cancelled: threading.Event | None = None,
        whole: list[None] | None = None,
        phase: str = "",
    ) -> None:
        self.emit = emit if isinstance(emit, _InTurn) else _InTurn(emit)
        self.deadline = deadline
        self.cancelled = cancelled or Flag()
        self._whole = [] if whole is None else whole
        self._phase = phase

    def within(self, seconds: float) -> Context:
        """The same, with at most this long to go."""
        return self._like(
            deadline=min(self.deadline, time.monotonic() + seconds), cancelled=self.cancelled
        )

    def shielded(self) -> Context:
        """The same, but deaf to cancellation and without a deadline: for cleaning up after one."""
        return self._like()

    def heard(self, events: list[_Event], kind: type[_Event]) -> Context:
        """The same; what is emitted of this kind is also added to this list."""

        def emit(event: Event) -> None:
            if isinstance(event, kind):
                events.append(event)
            self.emit(event)

        return self._like(emit, deadline=self.deadline, cancelled=self.cancelled)

    def _like(
        self, emit: Emit | None = None, *, phase: str | None = None, **changed: Any
    ) -> Context:
        phase = self._phase if phase is None else phase
        return Context(emit or self.emit, whole=self._whole, phase=phase, **changed)

    @contextmanager
    def phase(self, name: str) -> Iterator[Context]:
        """A step of several steps: those of the context that it gives are its details."""
        with self.step(name):
            yield self._like(phase=name, deadline=self.deadline, cancelled=self.cancelled)

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What is undone if it cannot be finished: nobody ends the command before that."""
        self._whole.append(None)
        try:
            yield
        finally:
            self._whole.pop()

    @property
    def is_whole(self) -> bool:
        """Whether there is something under way that must not be ended halfway."""
        return bool(self._whole)

    def cancel(self) -> None:
        """Wake whoever sleeps and stop whoever checks."""
        self.cancelled.set()

    def check(self) -> None:
        """Raise if the user asked to stop, or the time is over."""
        if self.cancelled.is_set():
            raise Cancelled
        if time.monotonic() >= self.deadline:
            raise Transient("Timed out", hint="Try again to resume where it left off.")

    def sleep(self, seconds: float) -> None:
        """Sleep, but wake and raise at once on cancellation or at the deadline."""
        left = min(seconds, self.deadline - time.monotonic(), threading.TIMEOUT_MAX)
        self.cancelled.wait(max(0.0, left))
        self.check()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Emit the start and the end of a piece of work."""
        self.check()
        self.emit(StepStarted(name, self._phase))
        start = time.monotonic()
        error = ""
        try:
            yield
        except BaseException as raised:
            error = str(raised) or type(raised).__name__
            raise
        finally:
            self.emit(StepEnded(name, round(time.monotonic() - start, 3), error, self._phase))

    def progress(self, step: str, done: int, total: int, unit: str = "bytes") -> None:
        """Tell how far a transfer is."""
        self.emit(Progress(step, done, total, unit))

    def note(self, message: str) -> None:
        """Tell something worth knowing."""
        self.emit(Note(message))

    def warn(self, message: str) -> None:
        """Tell something that the user may want to act on."""
        self.emit(Warned(message))
