"""What a store says when a call fails, in the same words for every kind of store."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sojourn.core.errors import (
    AuthError,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "absent",
    "damaged",
    "denied",
    "full",
    "of_files",
    "translated",
    "truncated",
    "unreachable",
    "within",
]

# Below an object there is nothing, and a symlink is no object.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_SHOWN = 500  # characters of what is wrong, which may quote what is stored
_FULL = (errno.ENOSPC, errno.EDQUOT)


def absent(path: str) -> NotFound:
    """There is no such object."""
    return NotFound(f"{path or 'Object'} not found in the store")


def denied(path: str, why: str) -> AuthError:
    """The store is not open to this caller."""
    return AuthError(
        f"The store denied access to {path}: {why}",
        hint="Check the credentials and their permissions for this store.",
    )


def truncated(path: str) -> IntegrityError:
    """An object is shorter than it must be."""
    return IntegrityError(
        f"{path} in the store is damaged: it is truncated",
        hint="Nothing was restored from it.",
    )


def damaged(path: str, why: object) -> IntegrityError:
    """An object is not what was written, or was never written by Sojourn."""
    return IntegrityError(
        f"{path} in the store is damaged: {str(why)[:_SHOWN]}",
        hint="Run `sojourn delete --force ID` to remove the task ID and its stored data.",
    )


def within(path: str, size: int, most: int) -> int:
    """The size of an object; one that is larger than its reader wants is not fetched."""
    if size > most:
        raise damaged(path, f"too large ({size:,} bytes)")
    return size


def full(path: str) -> QuotaError:
    """There is no room."""
    return QuotaError(
        f"No space left in the store for {path}",
        hint="Free some disk space, or choose another disk for the store.",
    )


def unreachable(path: str, why: str) -> Transient:
    """Anything else: another try may help."""
    return Transient(
        f"Could not access {path} in the store: {why}",
        hint="Check that the store is reachable and try again.",
    )


def of_files(path: str, error: OSError) -> SojournError:
    """What became of a call on files."""
    if error.errno in _ABSENT:
        return absent(path)
    if error.errno in (errno.EACCES, errno.EPERM):
        return denied(path, str(error))
    if error.errno in _FULL:
        return full(path)
    return unreachable(path, str(error))


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Errors of the file system leave as ours."""
    try:
        yield
    except OSError as error:
        raise of_files(path, error) from error
