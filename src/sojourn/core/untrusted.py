"""The readers for data that a machine could have written, or anything that runs on one.

A value that passes is small and flat, its numbers fit into 64 bits, and its strings can be printed
and can be names of files. All that does not pass raises ValueError, and nothing else.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

__all__ = ["LARGEST", "UNREADABLE", "decodable", "decoded", "number", "parsed", "parsed_bytes"]

LARGEST = 64 << 10  # bytes of one that tells about a machine: a lease, a report, a tag
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""What code raises that takes a value apart and finds it to be of another form."""

_DEEPEST = 16  # lists and objects in each other; ours have 5
_CROWDED = 1 << 16  # lists and objects; an empty one takes 30 times its bytes in memory
_DIGITS = 20
_MOST = (1 << 64) - 1
_BRACKETS = re.compile(r'["\\\[\]{}]')
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NUMBER = re.compile(r"[0-9]{1,15}")


def parsed_bytes(data: bytes | bytearray | memoryview, *, most: int = LARGEST) -> Any:
    """The value of JSON in UTF-8, of `most` bytes at most."""
    if len(data) > most:
        raise ValueError(f"too large ({len(data):,} bytes)")
    return parsed(decoded(data))


def parsed(text: str) -> Any:
    """The value of JSON."""
    _refuse_deep(text)
    try:
        value = json.loads(
            text, parse_int=_whole, parse_float=_finite, parse_constant=_refuse_constant
        )
    except RecursionError as error:  # the caller's own stack is nearly full
        raise ValueError("nested too deeply") from error
    if _SURROGATE.search(text):
        decodable(json.dumps(value, ensure_ascii=False))
    return value


def decoded(data: bytes | bytearray | memoryview) -> str:
    """A text in UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from error


def decodable(text: str) -> str:
    """The same; half of a surrogate pair is in no text, but a byte of a file's name may be."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError("it has half of a surrogate pair") from error
    return text


def number(text: str) -> int | None:
    """A number in a name, in decimal digits of ASCII; None if it is none.

    `str.isdigit` takes what `int` refuses, such as a superscript two.
    """
    return int(text) if _NUMBER.fullmatch(text) else None


def _refuse_deep(text: str) -> None:
    """Before it is parsed: a parser that recurses would have used the stack by then."""
    if text.count("[") + text.count("{") <= _DEEPEST:
        return
    depth, opened, quoted, escaped = 0, 0, False, -1
    for found in _BRACKETS.finditer(text):
        at, mark = found.start(), found[0]
        if at == escaped:
            continue
        if mark == "\\":
            escaped = at + 1
        elif mark == '"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if mark in "[{" else -1
            opened += mark in "[{"
            if depth > _DEEPEST or opened > _CROWDED:
                raise ValueError("nested too deeply, or too many lists")


def _whole(digits: str) -> int:
    value = int(digits) if len(digits) <= _DIGITS else _MOST + 1
    if abs(value) > _MOST:
        raise ValueError(f"a number of {len(digits)} digits is too large")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
