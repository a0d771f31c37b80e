"""What is written down about an attempt when it is over."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Outcome", "Report"]


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
        return cls(**(known | {"outcome": Outcome(data["outcome"])}))
