"""The only threads of this layer: a few workers that keep the wire busy.

Results come back to the thread that submitted the work, so callers need no locks.
"""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from sojourn.core.context import Context

__all__ = ["Workers"]

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
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="sojourn-storage")
        self._pending: dict[Future[Any], Callable[[Any], None]] = {}

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
        for future in self._pending:
            future.cancel()
        wait(self._pending)
        self._pending.clear()

    def collect(self) -> None:
        """Wait for something that was submitted to be done, for a moment at most."""
        self._ctx.check()
        done, _ = wait(self._pending, timeout=_LOOK_UP_EVERY, return_when=FIRST_COMPLETED)
        for future in done:
            self._pending.pop(future)(future.result())

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
            self._pool.shutdown(wait=True, cancel_futures=True)
