"""One TOML file, and the line of everything in it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Document", "read_document"]


@dataclass(frozen=True)
class Document:
    """The contents of a settings file. `project`: it belongs to a project, not to the user."""

    path: Path
    data: Mapping[str, Any]
    text: str = field(repr=False)
    project: bool = False

    def table(self, *keys: str) -> Mapping[str, Any]:
        """The table at this path; absent: an empty one. Anything else there is refused."""
        found: Any = self.data
        for depth, key in enumerate(keys, 1):
            found = found.get(key, {})
            if not isinstance(found, dict):
                raise self.problem(keys[:depth], f"must be a table, as in [{'.'.join(keys)}]")
        return dict(found)

    def origin(self, keys: tuple[str, ...]) -> str:
        """File and line of a value, for people."""
        line = next((self.lines[k] for k in _around(keys) if k in self.lines), None)
        return self.shown if line is None else f"{self.shown}:{line}"

    def problem(self, keys: tuple[str, ...], message: str) -> InvalidInput:
        """The error that a value is wrong."""
        return InvalidInput(f"{self.origin(keys)}: {'.'.join(keys)}", message)

    @property
    def shown(self) -> str:
        """Its path, for people: from the current folder if it is there, or with ~."""
        path = str(self.path)
        if self.path.parent == _here():
            return self.path.name
        home = os.path.expanduser("~")
        return f"~{path[len(home) :]}" if path.startswith(f"{home}{os.sep}") else path

    @cached_property
    def lines(self) -> dict[tuple[str, ...], int]:
        """The line of each key. Only errors and `sojourn config` ask for them.

        The parser tells no lines, but a file may end after any of them: a key stands after the
        longest beginning of the file that has all before it.
        """
        found: dict[tuple[str, ...], int] = {}
        every = self.text.splitlines(keepends=True)
        start = 1
        for number in range(1, len(every) + 1):
            try:
                parsed = _parsed("".join(every[:number]))
            except ValueError:
                continue  # in the middle of a text or list that goes on
            for keys in _keys(parsed):
                found.setdefault(keys, start)
            start = number + 1
        return found


def _parsed(text: str) -> dict[str, Any]:
    # Imported here: most commands find no settings, and start without a parser.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, Any] = tomllib.loads(text)
    return found


def _here() -> Path | None:
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:  # it was removed
        return None


def _around(keys: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A key and the tables that it is in, the nearest first."""
    for length in range(len(keys), 0, -1):
        yield keys[:length]


def _keys(table: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from _keys(value, (*above, name))


def read_document(path: Path, *, project: bool = False) -> Document | None:
    """A settings file; None if there is none."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(str(path), f"could not read file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), "not valid UTF-8") from error
    try:
        return Document(path, _parsed(text), text, project)
    except (ValueError, RecursionError) as error:
        said = "too deeply nested" if isinstance(error, RecursionError) else str(error)
        shown = Document(path, {}, text).shown
        raise InvalidInput(shown, f"invalid TOML: {said}") from error
