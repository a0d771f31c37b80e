"""Filters of lists of Compute Engine.

They are comparisons with `=`, `!=`, `:`, `eq` and `ne`, joined by AND, OR or parentheses beside
each other. Others are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.simcloud.gcp.wire import GCPError

_TOKEN = re.compile(r'\s*(\(|\)|!=|=|:|"(?:[^"\\]|\\.)*"|[^\s()=:!"]+)')
Test = Callable[[dict[str, Any]], bool]


def selected(text: str, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records that a filter lets pass."""
    if not text.strip():
        return records
    test = _Parser(_TOKEN.findall(text), text).parsed()
    return [record for record in records if test(record)]


class _Parser:
    def __init__(self, tokens: list[str], text: str) -> None:
        self._left = tokens
        self._text = text

    def parsed(self) -> Test:
        test = self._either()
        if self._left:
            raise self._refused()
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._takes("OR"):
            tests.append(self._both())
        return lambda record: any(test(record) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._takes("AND") or (self._left and self._left[0] not in (")", "OR")):
            tests.append(self._one())
        return lambda record: all(test(record) for test in tests)

    def _one(self) -> Test:
        if self._takes("("):
            test = self._either()
            if not self._takes(")"):
                raise self._refused()
            return test
        field, sign, value = (self._next() for _ in range(3))
        if value.startswith('"'):
            value = value[1:-1]
        return self._comparison(field, sign, value)

    def _comparison(self, field: str, sign: str, value: str) -> Test:
        if sign in ("eq", "ne"):
            pattern = re.compile(value)
            wanted = sign == "eq"
            return lambda record: bool(pattern.fullmatch(_value(record, field))) is wanted
        if sign == ":" and value == "*":
            return lambda record: _has(record, field)
        if sign == ":" and value.endswith("*"):
            return lambda record: _value(record, field).startswith(value[:-1])
        if sign == ":":
            return lambda record: value in _value(record, field)
        if sign in ("=", "!="):
            if "*" in value:
                raise self._refused()
            return lambda record: (_value(record, field) == value) is (sign == "=")
        raise self._refused()

    def _takes(self, token: str) -> bool:
        if self._left and self._left[0] == token:
            del self._left[0]
            return True
        return False

    def _next(self) -> str:
        if not self._left:
            raise self._refused()
        return self._left.pop(0)

    def _refused(self) -> GCPError:
        message = (
            f"Invalid value for field 'filter': '{self._text}'. Invalid list filter expression."
        )
        return GCPError("invalid", message, 400)


def _found(record: dict[str, Any], field: str) -> Any:
    value: Any = record
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _has(record: dict[str, Any], field: str) -> bool:
    return _found(record, field) is not None


def _value(record: dict[str, Any], field: str) -> str:
    value = _found(record, field)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
