"""Words on standard output and standard error: escaped, coloured on a terminal.

What Sojourn says is escaped where it is written, see `escape`: nothing in it does anything to a
terminal but our own colours.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple, TextIO

from sojourn.core.errors import SojournError
from sojourn.core.escape import escaped, escaped_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Coloured",
    "Line",
    "Unwritable",
    "columns",
    "print_",
    "say",
    "share_a_screen",
    "silence",
    "state_colour",
    "unwritable",
    "write",
    "write_lines",
]

DIM, RED, GREEN, YELLOW, CYAN = "2", "31", "32", "33", "36"
_STATES = {"succeeded": GREEN, "running": CYAN, "failed": RED, "timed-out": RED}


class Coloured(NamedTuple):
    """Text that a terminal shows in a colour."""

    text: str
    code: str


Line = str | tuple[str | Coloured, ...]


class Unwritable(SojournError):
    """Standard output takes no more; a full disk above all."""


def state_colour(state: str) -> str:
    """The colour of a task's state."""
    return _STATES.get(state, YELLOW)


def write_lines(lines: Iterable[Line]) -> None:
    """Results: each line escaped, in colours if standard output is a terminal."""
    plain = not sys.stdout.isatty()
    write("".join(f"{_joined(line, plain)}\n" for line in lines))


def _joined(line: Line, plain: bool) -> str:
    if isinstance(line, str):
        return escaped(line)
    return "".join(_shown(part, escaped, plain) for part in line)


def write(text: str) -> None:
    """If its reader has enough, as `head` does, that is raised once; later output is dropped."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence(sys.stdout)
        raise
    except OSError as error:
        silence(sys.stdout)
        raise unwritable(error) from error


def unwritable(error: OSError) -> Unwritable:
    """The error for output that was not taken."""
    return Unwritable(f"Could not write to standard output: {error.strerror}")


def say(*parts: str | Coloured, coloured: bool | None = None) -> None:
    """Tell something of Sojourn's own work; in colours if standard error is a terminal."""
    plain = not (sys.stderr.isatty() if coloured is None else coloured)
    print_("".join(_shown(part, escaped_lines, plain) for part in parts) + "\n")


def _shown(part: str | Coloured, escape: Callable[[str], str], plain: bool) -> str:
    if isinstance(part, str):
        return escape(part)
    text = escape(part.text)
    if plain or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\033[{part.code}m{text}\033[0m"


def print_(text: str) -> None:
    """Nobody has to listen to it."""
    try:
        print(text, end="", file=sys.stderr, flush=True)  # noqa: T201
    except OSError:
        silence(sys.stderr)


def share_a_screen() -> bool:
    """Whether results and words end up in the same terminal or file."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except OSError:
        return False


def columns() -> int:
    """How wide the terminal is."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def silence(stream: TextIO) -> None:
    """Drop what is written there from now on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
