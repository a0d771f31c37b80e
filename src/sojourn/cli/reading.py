"""What the readers of all kinds of files share; no parser is loaded here."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["decoded", "located", "read_text", "unknown"]


def read_text(path: Path) -> str:
    """The text of a file, its line endings untouched."""
    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from error


def decoded(data: bytes, name: str) -> str:
    """The text that a file, or whatever has this name, contains."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(name, "is not a text in UTF-8") from error


def located(where: str, problems: Iterable[Problem]) -> InvalidInput:
    """The same problems, each with the file it is in."""
    first, *more = (Problem(f"{where}: {p.path}", p.message) for p in problems)
    return InvalidInput(first.path, first.message, *more)


def unknown(path: str, known: Iterable[str]) -> Problem:
    """A field that there is not, and the one that was perhaps meant."""
    prefix, _, name = path.rpartition(".")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not close:
        return Problem(path, "there is no such field")
    meant = f"{prefix}.{close[0]}" if prefix else close[0]
    return Problem(path, f"there is no such field; did you mean {meant}?")
