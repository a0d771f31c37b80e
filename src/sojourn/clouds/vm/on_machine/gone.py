"""Which machines of a group the cloud knows to be gone. A machine that is only cut off is not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GoneMachines"]

S = TypeVar("S")


class GoneMachines(Generic[S]):
    """`machine in gone` asks the cloud, for all of the group at once. Raises OSError if it does
    not tell.

    `every`: seconds between questions; an agent that waits looks several times a second, at every
    rank. `absences`: answers in a row without a machine after which it is gone: one that was just
    launched may not be known everywhere yet.
    """

    def __init__(self, settings: S, every: float, absences: int) -> None:
        self._settings = settings
        self._every = every
        self._absences = absences
        self._asked = -every
        self._known: Mapping[str, bool] = {}
        self._answers = 0
        self._seen: dict[object, int] = {}  # the last answer that knew it
        self._gone: set[object] = set()

    def __contains__(self, machine: object) -> bool:
        if machine not in self._gone:
            self._ask()
            if self._is_gone(machine):
                self._gone.add(machine)
        return machine in self._gone

    def _is_gone(self, machine: object) -> bool:
        ended = self._known.get(str(machine))
        if not self._answers:
            return bool(ended)
        self._seen.setdefault(machine, self._answers - 1)  # this answer is the first
        if ended is not None:
            self._seen[machine] = self._answers
        return bool(ended) or self._answers - self._seen[machine] >= self._absences

    def _ask(self) -> None:
        now = time.monotonic()
        if now - self._asked < self._every:
            return
        self._asked = now
        self._known = self._look()
        self._answers += self._is_complete(self._known)

    def _look(self) -> Mapping[str, bool]:
        """Whether each machine that the cloud knows has ended."""
        raise NotImplementedError

    def _is_complete(self, known: Mapping[str, bool]) -> bool:
        """Whether an answer says something of machines that are not in it."""
        return True
