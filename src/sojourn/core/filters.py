"""Which files are transferred: exclude patterns in the manner of rclone.

A pattern that starts with `/` is anchored at the workdir, others match at any depth. `*` and `?`
stay within one name, `**` crosses folders, `[ab]` and `{one,two}` choose. A pattern that matches
a folder excludes all that is in it; one that ends with `/` matches folders only.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.core.above import FromAbove
from sojourn.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ALWAYS_EXCLUDED", "DEFAULT_IGNORED", "Filters"]

ALWAYS_EXCLUDED = ("/main.tf", "/terraform.tfstate*", "/.terraform**", ".sojourn-*.part")
"""Terraform's own files and our half-written ones are never transferred."""

DEFAULT_IGNORED = (".git", ".venv", "node_modules", "__pycache__")
"""Names that are not uploaded from any folder unless asked for: programs make them anew."""


class Filters:
    """Compiled exclude patterns; `/`-separated paths relative to the workdir go in."""

    def __init__(self, exclude: Iterable[str] = ()) -> None:
        self.exclude = tuple(exclude)
        self._covered = FromAbove(self.excludes, top=False)
        expressions = [_translate(pattern) for pattern in (*ALWAYS_EXCLUDED, *self.exclude)]
        self._match = re.compile("|".join(f"(?:{e})" for e in expressions), re.DOTALL).fullmatch

    def excludes(self, path: str, *, folder: bool = True) -> bool:
        """Whether a pattern matches this very path; of the folders above it `covers` knows."""
        return self._match(f"{path}/" if folder else path) is not None

    def covers(self, path: str, *, folder: bool = True) -> bool:
        """Whether this path or one of the folders above it is excluded."""
        return self._covered.above(path) or self.excludes(path, folder=folder)


def _translate(pattern: str) -> str:
    """An expression for paths; those of folders end with a slash."""
    body = pattern.strip("/")
    if not body:
        raise InvalidInput("storage.exclude", f"{pattern!r} matches nothing; remove it")
    try:
        expression = _body(body)
        re.compile(expression)
    except (ValueError, re.error) as error:
        raise InvalidInput("storage.exclude", f"invalid pattern {pattern!r}: {error}") from error
    start = "" if pattern.startswith("/") else "(?:.*/)?"
    end = "/" if pattern.endswith("/") else "/?"
    return start + expression + end


_TOKEN = re.compile(r"\*\*|\*|\?|\[[!^]?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL)
_PLAIN = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def _body(body: str) -> str:
    out = []
    depth = 0
    for token in _TOKEN.findall(body):
        if token in _PLAIN:
            out.append(_PLAIN[token])
        elif token[0] == "[":
            out.append(_class(token))
        elif token == "{":
            depth += 1
            out.append("(?:")
        elif token == "}" and depth:
            depth -= 1
            out.append(")")
        elif token == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(token[1:] if len(token) == 2 else token))
    if depth:
        raise ValueError("unclosed {")
    return "".join(out)


_MEMBER = re.compile(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)


def _class(token: str) -> str:
    negated = token[1:2] in ("!", "^")
    members = token[1 + negated : -1]
    if not members:
        raise ValueError("unclosed [")
    inside = ""
    for low, high in _MEMBER.findall(members):
        inside += re.escape(low[-1]) + (f"-{re.escape(high[-1])}" if high else "")
    return f"[^/{inside}]" if negated else f"(?!/)[{inside}]"
