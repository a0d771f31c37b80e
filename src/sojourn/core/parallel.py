"""Work that can go on at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["aside", "together"]

T = TypeVar("T")


def together(
    jobs: Sequence[Callable[[], T]], *, at_once: int = 0, stop: Callable[[], None] | None = None
) -> list[T]:
    """Do all of it, and return what each gave; if any fail, the first failure is raised.

    All have come to their end then: nothing goes on behind the caller's back. After Ctrl-C in a
    program (KeyboardInterrupt), `stop` is called first, and without it nobody waits for them: one
    may be stuck in a call that takes minutes. `at_once`: how many at the same time; 0: all.
    """
    if len(jobs) < 2:
        return [job() for job in jobs]
    from sojourn.core.daemons import Daemons  # not free, and the local cloud needs none

    pool = Daemons(at_once or len(jobs), watched=True)
    work = [pool.submit(job) for job in jobs]
    left = len(work)
    try:
        while left:
            pool.done.get()
            left -= 1
    except BaseException:
        if stop is not None:
            stop()
            for _ in range(left):
                pool.done.get()
        raise
    finally:
        pool.end(within=0)
    return [job.result() for job in work]


def aside(work: Callable[[], T]) -> Callable[[], T]:
    """Start a look at something; what is returned waits for its result, once."""
    from sojourn.core.daemons import Daemons  # not free, and the local cloud needs none

    pool = Daemons(1, watched=True)
    job = pool.submit(work)

    def result() -> T:
        pool.done.get()
        pool.end(within=0)
        return job.result()

    return result
