"""Threads that nobody has to wait for: one may be stuck in a call to a store that does not answer.

Those of `concurrent.futures` are waited for when Python ends, however long that takes.
"""

from __future__ import annotations

import threading
import time
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Daemons", "Job", "is_daemon"]

_Result = TypeVar("_Result")


class _Watched(threading.Thread):
    """Its caller waits for it, and expects it to look at its context."""


def is_daemon() -> bool:
    """Whether this thread is one of those that nobody waits for."""
    thread = threading.current_thread()
    return thread.daemon and not isinstance(thread, _Watched)


class Job(Generic[_Result]):
    """Something to do, and what came of it."""

    def __init__(self, work: Callable[..., _Result], args: tuple[Any, ...]) -> None:
        self._work = work
        self._args = args
        self._result: _Result
        self._error: BaseException | None = None

    def run(self) -> None:
        """Runs in a worker."""
        try:
            self._result = self._work(*self._args)
        except BaseException as error:
            self._error = error
        del self._work, self._args  # what they hold may be large

    def result(self) -> _Result:
        """What it gave, or its error; of one that is done."""
        if self._error is not None:
            raise self._error
        return self._result


class Daemons:
    """A pool of such threads, started as they are needed; `done` gets each job when it is.

    `watched`: somebody does wait for their jobs, unless the program itself is interrupted.
    """

    def __init__(self, count: int, *, watched: bool = False) -> None:
        self._kind = _Watched if watched else threading.Thread
        self.done: SimpleQueue[Job[Any]] = SimpleQueue()
        self._count = count
        self._todo: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def submit(self, work: Callable[..., _Result], *args: Any) -> Job[_Result]:
        """Have it done, in turn."""
        job = Job(work, args)
        self._todo.put(job)
        if len(self._threads) < self._count:
            thread = self._kind(target=self._run, name="sojourn-worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        return job

    def drop(self) -> list[Job[Any]]:
        """What has not begun, and will not."""
        dropped: list[Job[Any]] = []
        while True:
            try:
                job = self._todo.get_nowait()
            except Empty:
                return dropped
            if job:
                dropped.append(job)

    def end(self, within: float | None = None) -> None:
        """Drop what has not begun, and wait for the rest, or for so many seconds."""
        self.drop()
        for _ in self._threads:
            self._todo.put(None)
        give_up = None if within is None else time.monotonic() + within
        for thread in self._threads:
            thread.join(None if give_up is None else max(0.0, give_up - time.monotonic()))

    def _run(self) -> None:
        while (job := self._todo.get()) is not None:
            job.run()
            self.done.put(job)
            del job  # its result is large, and the next one may be far
