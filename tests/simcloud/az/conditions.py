"""Conditions of role assignments, as far as they are about the paths of blobs.

A condition narrows what the role allows on data; on everything else it has no effect. What is not
known here is refused, so that no condition seems to hold that Azure would read otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tests.simcloud.az.wire import ArmError

VERSION = "2.0"
_LONGEST = 8192  # characters
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_ATTRIBUTES = {f"@Resource[{_BLOBS}:path]": "path", f"@Request[{_BLOBS}:prefix]": "prefix"}
_SUB_OPERATIONS = ("Blob.List",)
_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, given: value == given,
    "StringNotEquals": lambda value, given: value != given,
    "StringStartsWith": lambda value, given: value.startswith(given),
    "StringNotStartsWith": lambda value, given: not value.startswith(given),
}
_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[()!])|(?P<word>AND|OR|NOT)\b"
    r"|(?P<test>ActionMatches|SubOperationMatches)\{'(?P<tested>[^']*)'\}"
    r"|(?P<attribute>@\w+\[[^\]]+\])\s+(?P<operator>\w+)\s+'(?P<given>[^']*)')"
)


@dataclass(frozen=True)
class Asked:
    """What somebody wants to do with data: what is not known of it has no value at all."""

    action: str
    sub_operation: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)


Test = Callable[[Asked], bool]


def parse(text: str) -> Test:
    """A condition; one that Azure would not take raises ArmError."""
    if len(text) > _LONGEST:
        raise _wrong(f"it has more than {_LONGEST} characters")
    found = _Parser(text)
    test = found.either()
    found.end()
    return test


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[re.Match[str]] = []
        text, place = text.strip(), 0
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None:
                raise _wrong(f"not understood: {text[place : place + 40]!r}")
            self._tokens.append(token)
            place = token.end()

    def either(self) -> Test:
        tests = [self._all()]
        while self._take("OR"):
            tests.append(self._all())
        return lambda asked: any(test(asked) for test in tests)

    def end(self) -> None:
        if self._tokens:
            raise _wrong(f"something is left: {self._tokens[0][0]!r}")

    def _all(self) -> Test:
        tests = [self._one()]
        while self._take("AND"):
            tests.append(self._one())
        return lambda asked: all(test(asked) for test in tests)

    def _one(self) -> Test:
        if self._take("!") or self._take("NOT"):
            inner = self._one()
            return lambda asked: not inner(asked)
        if self._take("("):
            inner = self.either()
            if not self._take(")"):
                raise _wrong("a parenthesis is not closed")
            return inner
        if not self._tokens:
            raise _wrong("it ends too early")
        return _test(self._tokens.pop(0))

    def _take(self, wanted: str) -> bool:
        if self._tokens and wanted in (self._tokens[0]["sign"], self._tokens[0]["word"]):
            self._tokens.pop(0)
            return True
        return False


def _test(token: re.Match[str]) -> Test:
    tested = token["tested"]
    if token["test"] == "ActionMatches":
        return lambda asked: fnmatchcase(asked.action.lower(), tested.lower())
    if token["test"]:
        if tested not in _SUB_OPERATIONS:
            raise NotImplementedError(f"the sub-operation {tested} is not known here")
        return lambda asked: asked.sub_operation == tested
    if not token["attribute"]:
        raise _wrong(f"unexpected: {token[0]!r}")
    name, operator = _ATTRIBUTES.get(token["attribute"]), _OPERATORS.get(token["operator"])
    if name is None or operator is None:
        raise NotImplementedError(f"{token[0].strip()} is not known here")
    attribute, compare, given = name, operator, token["given"]

    def holds(asked: Asked) -> bool:
        value = asked.attributes.get(attribute)
        return value is not None and compare(value, given)

    return holds


def _wrong(why: str) -> ArmError:
    return ArmError(400, "InvalidRoleAssignmentCondition", f"The condition is not valid: {why}.")
