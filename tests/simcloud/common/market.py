"""What can be launched where. All of it is as a test says; what is told then is the cloud's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Why = TypeVar("Why")


class Wanted(Protocol):
    """An instance that is about to be launched."""

    @property
    def type(self) -> str: ...

    @property
    def zone(self) -> str: ...


@dataclass
class _Rule(Generic[Why]):
    type: str | None
    zone: str | None
    left: int | None  # launches; None: any number
    why: Why | None = None  # None: there is no capacity

    def concerns(self, wanted: Wanted) -> bool:
        return self.type in (None, wanted.type) and self.zone in (None, wanted.zone)


class Market(Generic[Why]):
    """Everything can be had, until a test says otherwise. `Why` is the cloud's type of reasons."""

    def __init__(self) -> None:
        self._capacity: list[_Rule[Why]] = []
        self._refusals: list[_Rule[Why]] = []

    def set_capacity(self, type: str | None, zone: str | None, available: bool | int) -> None:
        """The newest word on a type or zone counts."""
        left = None if available is True else int(available)
        self._capacity.insert(0, _Rule(type, zone, left))

    def refuse(self, why: Why, type: str | None, zone: str | None, times: int | None) -> None:
        self._refusals.append(_Rule(type, zone, times, why))

    def allow(self) -> None:
        """Take back all refusals."""
        self._refusals.clear()

    def refusal(self, wanted: Wanted) -> Why | None:
        """Why it cannot be launched, if a test gave a reason; it is used up by this."""
        for rule in self._refusals:
            if rule.concerns(wanted) and rule.left != 0:
                rule.left = rule.left and rule.left - 1
                return rule.why
        return None

    def has_room(self, wanted: Wanted) -> bool:
        """Whether there is capacity for it, which is taken by this."""
        for rule in self._capacity:
            if rule.concerns(wanted):
                if rule.left == 0:
                    return False
                rule.left = rule.left and rule.left - 1
                return True
        return True
