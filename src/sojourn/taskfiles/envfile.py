"""Variables in a file of NAME=VALUE lines, as Docker and dotenv read it.

Values may be secret: no message has one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.core.environment import environment_problems
from sojourn.core.errors import Problem
from sojourn.taskfiles.reading import read_text, refusal

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_env_file"]

_LINE = re.compile(
    r"""
    [^\S\n]*(?:export[^\S\n]+)?
    (?P<name>[^\s=\#'"]+)[^\S\n]*
    (?:=[^\S\n]*
      (?:'(?P<single>[^']*)'
        |"(?P<double>(?:[^"\\]|\\.)*)"
        |(?P<plain>(?!['"])[^\n]*?)
      )
    )?
    [^\S\n]*(?:(?<=\s)\#[^\n]*)?(?:\n|\Z)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK = re.compile(r"[^\S\n]*(?:\#[^\n]*)?(?:\n|\Z)")
_MALFORMED = "must be NAME=VALUE; a quoted value must end with the same quote"
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of a file, by name; all that is wrong with it is raised at once."""
    text = read_text(path).removeprefix("\ufeff").replace("\r\n", "\n")
    found: dict[str, str] = {}
    problems: list[Problem] = []
    at = 0
    while at < len(text):
        match = _BLANK.match(text, at) or _LINE.match(text, at)
        wrong = _MALFORMED if match is None else _taken(match, found)
        if wrong:
            # Not even the name is told: it may be a secret that lost its name.
            problems.append(Problem(f"{path}:{text.count(chr(10), 0, at) + 1}", wrong))
        at = match.end() if match else text.find("\n", at) + 1 or len(text)
    if problems:
        raise refusal(problems)
    return found


def _taken(match: re.Match[str], found: dict[str, str]) -> str:
    """Take the variable of a line, if it has one; returns what is wrong with it."""
    if "name" not in match.groupdict():
        return ""
    own = {match["name"]: _value(match)}
    found |= own
    return next((problem.message for problem in environment_problems(own)), "")


def _value(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[1]), match["double"])
    return match["single"] or match["plain"] or ""
