"""What is written down about an attempt when it is over."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Outcome", "Report", "refuse_exit_code"]


class Outcome(str, Enum):
    """How an attempt ended. Only what the script itself brought about is final."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed-out"
    PREEMPTED = "preempted"
    LOST = "lost"

    @property
    def final(self) -> bool:
        """Preempted is not failed: another attempt follows."""
        return self not in (Outcome.PREEMPTED, Outcome.LOST)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Report:
    """The end of an attempt.

    `segments`: how many log segments it wrote; -1: not known.
    `lost`: how many paths of its output could not be stored; -1: none of it could.
    """

    rank: int
    attempt: int
    outcome: Outcome
    reason: str
    exit_code: int | None = None
    started: str = ""
    ended: str = ""
    segments: int = -1
    lost: int = 0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"outcome": self.outcome.value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """Read what `to_dict` wrote; fields that a newer version added are ignored."""
        known = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        report = cls(**(known | {"outcome": Outcome(data["outcome"])}))
        report._refuse_other_types()
        return report

    def _refuse_other_types(self) -> None:
        """A machine wrote it: what it says is shown to people, and becomes an exit code."""
        texts = (self.reason, self.started, self.ended)
        numbers = (self.rank, self.attempt, self.segments, self.lost)
        if not all(type(text) is str for text in texts):
            raise ValueError("reason, started and ended must be strings")
        if not all(type(number) is int for number in numbers):
            raise ValueError("rank, attempt, segments and lost must be whole numbers")
        refuse_exit_code(self.exit_code)


def refuse_exit_code(code: object) -> None:
    """Raise ValueError unless it is one, or None."""
    if code is not None and (type(code) is not int or not 0 <= code <= 255):
        raise ValueError("exit_code must be a whole number from 0 to 255")
