"""The only threads of this layer: a few workers that keep the wire busy.

Results come back to the thread that submitted the work, so callers need no locks.
"""

from __future__ import annotations

from queue import Empty
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn.core.daemons import Daemons, Job
from sojourn.core.errors import Cancelled

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sojourn.core.context import Context

__all__ = ["Workers"]

_BROKEN_OFF = (Cancelled, KeyboardInterrupt)
_GIVEN_UP_AFTER = 2.0  # seconds for what is under way, when somebody asked to stop
_LOOK_UP_EVERY = 0.5  # seconds between looks at cancellation while waiting
_Result = TypeVar("_Result")


class Workers:
    """Runs functions side by side; at most twice as many as workers are under way.

    As a context manager it waits at its end for all that was submitted; after an error, what has
    not begun is dropped.
    """

    def __init__(self, ctx: Context, count: int) -> None:
        self.count = count
        self._ctx = ctx
        self._limit = count * 2
        self._pool = Daemons(count)
        self._pending: dict[Job[Any], Callable[[Any], None]] = {}

    def submit(
        self, work: Callable[..., _Result], *args: Any, then: Callable[[_Result], None]
    ) -> None:
        """Have `work(*args)` done; `then` gets its result, in the caller's thread, later."""
        while len(self._pending) >= self._limit:
            self.collect()
        self._pending[self._pool.submit(work, *args)] = then

    def drain(self) -> None:
        """Wait until all that was submitted is done; raises the first error."""
        while self._pending:
            self.collect()

    def settle(self) -> None:
        """Wait until no worker is at work, whatever came of it; drops what has not begun."""
        for job in self._pool.drop():
            del self._pending[job]
        while self._pending:
            del self._pending[self._pool.done.get()]

    def collect(self) -> None:
        """Wait for something that was submitted to be done, for a moment at most."""
        self._ctx.check()
        try:
            job = self._pool.done.get(timeout=_LOOK_UP_EVERY)
        except Empty:
            return
        self._pending.pop(job)(job.result())

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.drain()
        finally:
            self._pool.end(_GIVEN_UP_AFTER if kind and issubclass(kind, _BROKEN_OFF) else None)
