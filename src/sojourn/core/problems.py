"""What can be wrong with the fields of a task, told all at once."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

from sojourn.core.argument import (
    COUNT,
    DURATION,
    FLAG,
    PAIRS,
    PATH,
    PRICE,
    TEXT,
    Kind,
    arguments_of,
)
from sojourn.core.durations import parse_seconds
from sojourn.core.environment import LARGEST_VARIABLE
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.filters import Filters

__all__ = [
    "LARGEST",
    "UNIX_ENDINGS",
    "copied",
    "excludable",
    "exclude_problems",
    "has_windows_endings",
    "in_seconds",
    "is_inside",
    "kind_problems",
    "number_problems",
    "refuse",
    "script_problems",
    "word_problems",
]

LARGEST = 2**63 - 1
_NUMBERS: dict[Kind, tuple[str, tuple[type, ...]]] = {
    COUNT: ("a whole number of at least 0", (int,)),
    PRICE: ("a price of at least 0", (int, float)),
    DURATION: ("a number of seconds or a duration such as '30m'", (int,)),
}
UNIX_ENDINGS = "sed -i 's/\\r$//' FILE"


def copied(holder: object, name: str) -> None:
    """Take a mapping as it is now: what its giver does with it later must not reach us."""
    value = getattr(holder, name)
    if isinstance(value, Mapping):
        object.__setattr__(holder, name, dict(value))


def in_seconds(holder: object, name: str) -> None:
    """What is no duration is left as it is, to be refused."""
    value = getattr(holder, name)
    if isinstance(value, str):
        with suppress(ValueError):
            object.__setattr__(holder, name, parse_seconds(value))


def refuse(problems: Iterator[Problem]) -> None:
    """Raise InvalidInput if there are any."""
    found = list(problems)
    if found:
        raise InvalidInput.of(found)


def kind_problems(holder: Any, prefix: str, *others: str) -> Iterator[Problem]:
    """Of the arguments of a dataclass, by their kinds. `others` are looked at elsewhere.

    A list has its own words for what it lists.
    """
    for each in fields(holder):
        declared, value = arguments_of(type(holder)).get(each.name), getattr(holder, each.name)
        if declared is None or each.name in others or (value is None and each.default is None):
            continue
        path = prefix + each.name
        if declared.kind in (TEXT, PATH):
            yield from _text_problems(value, path)
        elif declared.kind is FLAG and type(value) is not bool:
            yield Problem(path, f"must be a boolean, got {value!r}")
        elif declared.kind is PAIRS:
            yield from _mapping_problems(value, path)
        elif declared.kind in _NUMBERS:
            right, kinds = _NUMBERS[declared.kind]
            also = None if each.default is MISSING else each.default
            yield from number_problems(
                holder, each.name, right, low=0, also=also, high=LARGEST, kinds=kinds
            )


def _text_problems(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, str):
        yield Problem(path, f"must be a string, got {value!r}")
    elif "\0" in value:
        yield Problem(path, "must not contain a NUL character")


def _mapping_problems(value: object, path: str) -> Iterator[Problem]:
    if not isinstance(value, Mapping) or not all(
        isinstance(part, str) for pair in value.items() for part in pair
    ):
        yield Problem(path, "must be a map of strings to strings")


def number_problems(
    holder: object,
    name: str,
    right: str,
    *,
    low: float,
    also: float | None = None,
    high: float = float("inf"),
    kinds: tuple[type, ...] = (int,),
) -> Iterator[Problem]:
    """Of a number. `right`: what it must be, in words."""
    value: Any = getattr(holder, name)
    if type(value) not in kinds:
        yield Problem(name, f"must be {right}, got {value!r}")
    elif not (low <= value <= high or value == also) or value == float("inf"):
        limit = f"at most {high}" if value > high else right
        yield Problem(name, f"must be {limit}, got {value}")


def script_problems(script: str) -> Iterator[Problem]:
    """Of the text of a script."""
    if not script.strip():
        yield Problem("script", "must not be empty")
    elif script.lstrip().startswith("#!") and not script.startswith("#!"):
        yield Problem(
            "script",
            "must start with its shebang, without leading spaces or empty lines "
            "(in HCL, use <<-END instead of <<END)",
        )
    elif not script.startswith("#!"):
        yield Problem("script", "must start with a shebang such as #!/bin/bash")
    elif has_windows_endings(script):
        yield Problem(
            "script",
            "has Windows line endings (CRLF), which its program reads as part of words; "
            f"run `{UNIX_ENDINGS}`",
        )


def has_windows_endings(script: str) -> bool:
    """Whether the first line, or all others, end with CRLF: a here-document may need some."""
    first, *others = [line for line in script.split("\n") if line]
    return first.endswith("\r") or (bool(others) and all(each.endswith("\r") for each in others))


def word_problems(arguments: object) -> Iterator[Problem]:
    """Of the arguments of a script."""
    if not isinstance(arguments, tuple) or not all(isinstance(item, str) for item in arguments):
        yield Problem("arguments", "must be a list of strings, such as ['--lr', '0.1']")
        return
    for number, word in enumerate(arguments):
        if "\0" in word:
            yield Problem(f"arguments[{number}]", "must not contain a NUL character")
        elif len(word.encode(errors="surrogateescape")) > LARGEST_VARIABLE:
            yield Problem(
                f"arguments[{number}]",
                f"must be at most {LARGEST_VARIABLE:,} bytes; write it to a file in the workdir",
            )


def excludable(output: object) -> str:
    """The output as filters see it; nothing, if it is the whole workdir or wrong anyway."""
    path = posixpath.normpath(output) if isinstance(output, str) else "."
    return "" if path == "." else path


def exclude_problems(patterns: tuple[str, ...], output: str) -> Iterator[Problem]:
    """Of patterns of files that are not transferred; `output` must be."""
    if output and Filters().covers(output):
        yield Problem("storage.output", f"{output!r} is never transferred; choose another folder")
        return
    for pattern in patterns:
        try:
            excluded = Filters((pattern,)).covers(output)
        except InvalidInput as error:
            yield from error.problems
            continue
        if output and excluded:
            yield Problem(
                "storage.exclude",
                f"{pattern!r} excludes storage.output ({output!r}): no results would be downloaded",
            )


def is_inside(path: str) -> bool:
    """Whether a path leads nowhere but into the workdir."""
    return not path.startswith("/") and ".." not in posixpath.normpath(path).split("/")
