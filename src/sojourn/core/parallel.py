"""Work that can go on at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["together"]

T = TypeVar("T")


def together(jobs: Sequence[Callable[[], T]]) -> list[T]:
    """Do all of it, and return what each gave; if any fail, the first failure is raised.

    All have come to their end then: nothing goes on behind the caller's back.
    """
    if len(jobs) < 2:
        return [job() for job in jobs]
    from concurrent.futures import ThreadPoolExecutor  # not free, and the local cloud needs none

    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job) for job in jobs]
    return [future.result() for future in futures]
