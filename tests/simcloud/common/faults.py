"""Calls that fail because a test says so. What fails by itself does not belong here."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol


class Call(Protocol):
    """A call to an API, as it is written down."""

    who: str  # the caller, once it is known
    error: str  # the code that it was refused with

    @property
    def name(self) -> str:
        """The service and the operation: `s3:ListObjectsV2`."""


@dataclass
class Fault:
    """Strikes calls of an operation, each time one that would have come through."""

    operation: str  # may have wildcards
    who: str
    skip: int
    times: int
    after: bool
    error: Exception | None  # None: throttled, as the service puts it

    def concerns(self, call: Call) -> bool:
        return fnmatchcase(call.name, self.operation) and fnmatchcase(call.who, self.who)


class Faults:
    """All that were asked for and have not struck yet."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def clear(self) -> None:
        self._waiting.clear()

    def strike(self, call: Call) -> Fault | None:
        """The fault that this call meets; it is used up by this."""
        struck = None
        for fault in [fault for fault in self._waiting if fault.concerns(call)]:
            if fault.skip:
                fault.skip -= 1
            elif struck is None:
                struck = fault
                fault.times -= 1
                if not fault.times:
                    self._waiting.remove(fault)
        return struck
