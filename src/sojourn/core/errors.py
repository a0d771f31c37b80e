"""Every error that leaves Sojourn, named by what the caller can do about it.

    SojournError
    ├── InvalidInput       correct the named fields and try again
    ├── MissingDependency  install the named extra
    ├── AuthError          log in, or ask for the permission
    ├── NotFound           it is not there (any more)
    ├── Conflict           somebody else holds it, or it exists with another content
    ├── CapacityError      the cloud has no such machine now; wait or choose another
    ├── QuotaError         a limit is reached, a full disk included; raise it or free some
    ├── IntegrityError     stored data is damaged or was tampered with; nothing was restored from it
    ├── Transient          it may work if tried again, after `retry_after` seconds
    ├── TaskFailed         the script ended badly; `exit` is its exit code
    └── Cancelled          the user asked to stop

A message says what happened and why; `hint` says what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AuthError",
    "Cancelled",
    "CapacityError",
    "Conflict",
    "IntegrityError",
    "InvalidInput",
    "MissingDependency",
    "NotFound",
    "Problem",
    "QuotaError",
    "SojournError",
    "TaskFailed",
    "Transient",
]


class SojournError(Exception):
    """The root of the tree; `hint` says what to do next."""

    problems: tuple[Problem, ...] = ()

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        # Python prints it with a traceback, and a machine may have a part in the message.
        from sojourn.core.escape import escaped_lines  # most commands print no error

        return escaped_lines(f"{self.message}\n{self.hint}" if self.hint else self.message)

    def to_dict(self) -> dict[str, Any]:
        """The `error` row of the documented schema."""
        return {
            "type": "error",
            "error": type(self).__name__,
            "message": self.message,
            "hint": self.hint.strip(),
            "problems": [{"path": p.path, "message": p.message} for p in self.problems],
        }


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with an input: which field, and what would be right."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidInput(SojournError):
    """The input was refused before anything was made; `problems` names every field."""

    def __init__(self, path: str, message: str, *more: Problem) -> None:
        self.problems = (Problem(path, message), *more)
        super().__init__("\n".join(str(problem) for problem in self.problems))
        self.path = path

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> InvalidInput:
        """All of them, of which there is at least one."""
        return cls(problems[0].path, problems[0].message, *problems[1:])


class MissingDependency(SojournError):
    """An optional part is not installed."""

    def __init__(self, extra: str, message: str) -> None:
        from sojourn.core.installation import install_command  # every command imports this module

        super().__init__(message, hint=f"Run `{install_command(extra)}` to install it.")
        self.extra = extra


class AuthError(SojournError):
    """Credentials are missing, expired or not sufficient."""


LIST_ALL = "Run `sojourn list` to see all tasks."


class NotFound(SojournError):
    """The thing is not there."""

    @classmethod
    def task(cls, id: object, why: str = "") -> NotFound:
        """A task is not there; `why` goes on with the sentence."""
        return cls(f"Task {id} not found{why}", hint=LIST_ALL)


class Conflict(SojournError):
    """The thing exists with another content, or somebody else holds it."""


class CapacityError(SojournError):
    """The cloud has no such machine at the moment."""


class QuotaError(SojournError):
    """A limit is reached: an account's quota or a full disk."""


class IntegrityError(SojournError):
    """Stored data is not what was written, or tries to do what it must not."""


class Transient(SojournError):
    """It may work if tried again."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class TaskFailed(SojournError):
    """The script ended badly."""

    def __init__(self, message: str, *, exit: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.exit = exit


class Cancelled(SojournError):
    """The user asked to stop."""

    def __init__(self, message: str = "Cancelled", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
