"""Errors that every cloud of machines has, with what to do about them; each tells them by its own
codes."""

from __future__ import annotations

from sojourn.core.errors import LIST_ALL, CapacityError, Conflict, NotFound, SojournError, Transient

__all__ = ["absent", "in_use", "later", "no_capacity", "taken", "unknown", "unreachable"]


def absent(message: str) -> NotFound:
    """It is not there."""
    return NotFound(message, hint=LIST_ALL)


def in_use(message: str) -> Conflict:
    """Something else needs it."""
    return Conflict(message, hint="Try again once it is no longer in use.")


def later(message: str) -> Transient:
    """The cloud is busy with it, or with something else."""
    return Transient(message, hint="Try again to continue where it stopped.")


def no_capacity(message: str, place: str = "region") -> CapacityError:
    """There is no such machine now."""
    return CapacityError(message, hint=f"Try again later, or choose another machine or {place}.")


def taken(message: str) -> Conflict:
    """Somebody else has the name."""
    return Conflict(message, hint="This name is already taken; choose another name.")


def unknown(message: str) -> SojournError:
    """All others."""
    return SojournError(message, hint="Run `sojourn doctor` to check your setup.")


def unreachable(what: str, error: BaseException) -> Transient:
    """No answer at all."""
    return Transient(f"{what}: {error}", hint="Check your network and try again.")
