"""Anything that happened, as typed data; front ends turn events into words.

The JSON form of each (`to_dict`) is the documented schema of `--json`: its `type` is the class's
name in kebab case. Fields may be added, never renamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CloudEvent",
    "Downloaded",
    "Emit",
    "Event",
    "LogLine",
    "Note",
    "Progress",
    "StatusChanged",
    "StepEnded",
    "StepStarted",
    "Warned",
]


@dataclass(frozen=True, eq=False, repr=False)
class Event:
    """The base of all events.

    Comparing and showing are written once, here: generated anew for each class, as dataclasses
    do, they took 2 ms of the start of every command and agent.
    """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def to_dict(self) -> dict[str, Any]:
        """For JSON lines."""
        kebab = re.sub(r"(?<!^)(?=[A-Z])", "-", type(self).__name__).lower()
        return {"type": kebab, **vars(self)}


@dataclass(frozen=True, eq=False, repr=False)
class StepStarted(Event):
    """Work that may take a while has begun; `phase` is the step that it is a part of, if any."""

    step: str
    phase: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class StepEnded(Event):
    """The work is over; `error` is empty if it went well."""

    step: str
    seconds: float
    error: str = ""
    phase: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Progress(Event):
    """How far a transfer is. `total` is -1 while it is not known."""

    step: str
    done: int
    total: int
    unit: str = "bytes"


@dataclass(frozen=True, eq=False, repr=False)
class Downloaded(Event):
    """Results came home: how many files were written, how large they are, and where they are."""

    files: int
    bytes: int
    folder: str


@dataclass(frozen=True, eq=False, repr=False)
class Note(Event):
    """Something worth knowing."""

    message: str


@dataclass(frozen=True, eq=False, repr=False)
class Warned(Event):
    """Something that the user may want to act on; nothing was lost."""

    message: str


@dataclass(frozen=True, eq=False, repr=False)
class StatusChanged(Event):
    """A task went from one state to another."""

    id: str
    state: str
    reason: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class LogLine(Event):
    """A line that a script printed; `partial` if its end has not been printed yet.

    `id`: the task that it is of; empty within a store, which belongs to one task.
    """

    rank: int
    attempt: int
    time: str
    text: str
    partial: bool = False
    id: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class CloudEvent(Event):
    """Something that a scaler tells of itself: a machine started, was lost, could not be had."""

    time: str
    code: str
    description: str


Emit = Callable[[Event], None]
