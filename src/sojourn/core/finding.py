"""What a check-up finds."""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["Finding"]


@dataclass(frozen=True)
class Finding:
    """One thing looked at. `verdict`: ok, note or problem."""

    verdict: str
    subject: str
    detail: str

    @classmethod
    def failed(cls, subject: str, error: Exception) -> Finding:
        """It could not be looked at; nobody has to use it."""
        return cls("note", subject, " ".join(str(error).split()))

    def to_dict(self) -> dict[str, str]:
        return asdict(self)
