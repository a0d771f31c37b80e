"""Conditions of bindings: the part of the Common Expression Language that IAM has for resources.

Attributes are strings: `resource.name`, `resource.type`, `resource.service`, and the prefix of a
list of objects by `api.getAttribute`. Functions are `startsWith`, `endsWith` and `extract`;
operators `==`, `!=`, `&&`, `||`, `!`. Others are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping

Attributes = Mapping[str, str]
Value = Callable[[Attributes], "str | bool"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"[^"\\]*"|'[^'\\]*')|(?P<name>[A-Za-z_]\w*)|(?P<sign>==|!=|&&|\|\||[!().,]))"""
)
_ATTRIBUTES = {"resource.name", "resource.type", "resource.service"}
_OF_CALLS = {"storage.googleapis.com/objectListPrefix"}


class ConditionError(Exception):
    """The text is no condition that is known here."""


def holds(expression: str, attributes: Attributes) -> bool:
    """Whether a condition is true of a resource."""
    value = parse(expression)(attributes)
    return value is True


@functools.lru_cache(maxsize=1000)
def parse(expression: str) -> Value:
    """A condition, ready to be asked."""
    parser = _Parser(_tokens(expression))
    value = parser.either()
    if parser.left:
        raise ConditionError(f"mismatched input '{parser.left[0]}'")
    return value


def _tokens(text: str) -> list[str]:
    found, end = [], 0
    text = text.strip()
    while end < len(text):
        match = _TOKEN.match(text, end)
        if match is None:
            raise ConditionError(f"token recognition error at '{text[end:]}'")
        found.append(match.group().strip())
        end = match.end()
    return found


class _Parser:
    """By recursive descent; the tokens that are left are consumed from the front."""

    def __init__(self, tokens: list[str]) -> None:
        self.left = tokens

    def either(self) -> Value:
        values = [self.both()]
        while self._takes("||"):
            values.append(self.both())
        return _combined(any, values)

    def both(self) -> Value:
        values = [self.compared()]
        while self._takes("&&"):
            values.append(self.compared())
        return _combined(all, values)

    def compared(self) -> Value:
        left = self.unary()
        for sign, equal in (("==", True), ("!=", False)):
            if self._takes(sign):
                return _equality(left, self.unary(), equal)
        return left

    def unary(self) -> Value:
        if self._takes("!"):
            inner = self.unary()
            return lambda attributes: inner(attributes) is not True
        if self._takes("("):
            value = self.either()
            self._expect(")")
            return value
        return self._member()

    def _member(self) -> Value:
        token = self._next()
        if token[0] in "'\"":
            text = token[1:-1]
            return lambda _: text
        path = token
        if path == "api":
            return self._functions(self._api())
        while path not in _ATTRIBUTES and self._takes("."):
            path += f".{self._next()}"
        if path not in _ATTRIBUTES:
            raise ConditionError(f"undeclared reference to '{path}'")
        return self._functions(functools.partial(_attribute, path))

    def _api(self) -> Value:
        """`api.getAttribute('name', 'default')`."""
        for sign in (".", "getAttribute", "("):
            self._expect(sign)
        name = self._next()[1:-1]
        self._expect(",")
        self._next()
        self._expect(")")
        if name not in _OF_CALLS:
            raise ConditionError(f"undeclared reference to '{name}'")
        return functools.partial(_attribute, name)

    def _functions(self, value: Value) -> Value:
        while self._takes("."):
            value = self._call(value)
        return value

    def _call(self, value: Value) -> Value:
        function = self._next()
        self._expect("(")
        argument = self._next()[1:-1]
        self._expect(")")
        if function == "startsWith":
            return lambda attributes: str(value(attributes)).startswith(argument)
        if function == "endsWith":
            return lambda attributes: str(value(attributes)).endswith(argument)
        if function == "extract":
            return lambda attributes: _extract(str(value(attributes)), argument)
        raise ConditionError(f"undeclared reference to '{function}'")

    def _takes(self, sign: str) -> bool:
        if self.left and self.left[0] == sign:
            del self.left[0]
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise ConditionError(f"missing '{sign}'")

    def _next(self) -> str:
        if not self.left:
            raise ConditionError("unexpected end")
        return self.left.pop(0)


def _attribute(name: str, attributes: Attributes) -> str:
    return attributes.get(name, "")


def _combined(of: Callable[[list[bool]], bool], values: list[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    return lambda attributes: of([value(attributes) is True for value in values])


def _equality(left: Value, right: Value, equal: bool) -> Value:
    return lambda attributes: (left(attributes) == right(attributes)) is equal


def _extract(text: str, template: str) -> str:
    """What stands for the braces, up to the text after them; nothing if it is not there."""
    before, _, rest = template.partition("{")
    after = rest.partition("}")[2]
    start = text.find(before)
    if start < 0:
        return ""
    found = text[start + len(before) :]
    return found.partition(after)[0] if after else found
