"""Lines of a .gitignore file, understood as git does (its dir.c and wildmatch.c).

Libraries that do this were tried and are not exact: they take a folder for ignored if all in it
is (`data/**` with `!data/keep`), and let `!folder` bring back all that is in the folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Rule", "parse_rules"]


@dataclass(frozen=True)
class Rule:
    """One pattern. `by_name`: it is compared with the last part of a path only."""

    negated: bool
    folders_only: bool
    by_name: bool
    expression: re.Pattern[str]

    def matches(self, path: str, *, folder: bool) -> bool:
        """Whether it is about this very path, relative to the rule's folder."""
        if self.folders_only and not folder:
            return False
        subject = path.rpartition("/")[2] if self.by_name else path
        return self.expression.fullmatch(subject) is not None


def parse_rules(text: str) -> list[Rule]:
    """The rules of a file, the one that wins first; lines that can match nothing are left out."""
    lines = text.removeprefix("\ufeff").split("\n")
    rules = (_rule(_trimmed(line.removesuffix("\r"))) for line in lines if line[:1] != "#")
    return [rule for rule in rules if rule][::-1]


_TRAILING_SPACES = re.compile(r"((?:\\.|[^\\])*?) *", re.DOTALL)


def _trimmed(line: str) -> str:
    match = _TRAILING_SPACES.fullmatch(line)
    return match[1] if match else line


def _rule(pattern: str) -> Rule | None:
    negated = pattern.startswith("!")
    body = pattern.removeprefix("!")
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    by_name = "/" not in body
    if not body:
        return None
    try:
        expression = "".join(_translate(body.removeprefix("/")))
    except _MatchesNothing:
        return None
    return Rule(negated, folders_only, by_name, re.compile(expression, re.DOTALL))


class _MatchesNothing(Exception):
    """A class without end, an unknown one, or a last backslash."""


def _translate(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "*":
            expression, at = _stars(glob, at)
            yield expression
            continue
        if char == "[":
            expression, at = _class(glob, at + 1)
            yield expression
            continue
        if char == "\\":
            at += 1
            char = _char(glob, at)
            yield re.escape(char)
        else:
            yield "[^/]" if char == "?" else re.escape(char)
        at += 1


def _char(glob: str, at: int) -> str:
    if at >= len(glob):
        raise _MatchesNothing
    return glob[at]


def _stars(glob: str, start: int) -> tuple[str, int]:
    """`**` crosses folders if it stands alone between slashes; all other stars do not."""
    end = start
    while end < len(glob) and glob[end] == "*":
        end += 1
    alone = glob[:start].endswith("/") or start == 0
    if end - start > 1 and alone:
        if end == len(glob):
            return ".*", end
        if glob[end] == "/":
            return "(?:.*/)?", end + 1
    return "[^/]*", end


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NAMED = re.compile(r"\[:([^\]]*):\]")


def _class(glob: str, at: int) -> tuple[str, int]:
    """What is between [ and ]; `at` is after the [. A first ] is one of the members."""
    negated = _char(glob, at) in "!^"
    at += negated
    members: list[str] = []
    first = at
    while at == first or _char(glob, at) != "]":
        named = _NAMED.match(glob, at)
        if named:
            if named[1] not in _CLASSES:
                raise _MatchesNothing
            members.append(_CLASSES[named[1]])
            at = named.end()
            continue
        low, at = _member(glob, at)
        members.append(re.escape(low))
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(glob, at + 1)
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
    inside = "".join(members)
    if negated:
        return f"[^/{inside}]", at + 1
    return f"(?!/)[{inside}]", at + 1


def _member(glob: str, at: int) -> tuple[str, int]:
    if _char(glob, at) == "\\":
        at += 1
    return _char(glob, at), at + 1
