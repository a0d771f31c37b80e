"""The variables that a script sees."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

from sojourn.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LARGEST_VARIABLE", "environment_problems", "not_here", "resolve_environment"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GLOB = re.compile(r"(?=.*[*?\[])[A-Za-z0-9_*?\[\]!-]+")
LARGEST_VARIABLE = 131_071  # bytes of NAME=VALUE, or of an argument, that Linux hands over
_FROM_LAUNCHER = ("CI", "CI_*", "GITHUB_*", "BITBUCKET_*", "CML_*", "REPO_TOKEN")


def environment_problems(environment: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with a task's environment, a problem a variable."""
    for name, value in environment.items():
        path = f"environment.{name}"
        if not isinstance(name, str) or not isinstance(value, str):
            yield Problem(path, "names and values must be strings")
        elif _NAME.fullmatch(name):
            size = len(f"{name}={value}".encode(errors="surrogateescape"))
            if "\0" in value:
                yield Problem(path, "must not contain a NUL character")
            elif size > LARGEST_VARIABLE:
                yield Problem(
                    path,
                    f"must be at most {LARGEST_VARIABLE:,} bytes including its name, got {size:,}; "
                    "write it to a file in the workdir",
                )
        elif not _GLOB.fullmatch(name):
            yield Problem(
                path,
                "name must contain only letters, digits and underscores, "
                "and must not start with a digit",
            )
        elif value:
            yield Problem(path, "a glob imports local variables; its value must be empty")


def resolve_environment(
    environment: Mapping[str, str], local: Mapping[str, str], *, ci: bool = True
) -> dict[str, str]:
    """Fill in what a task imports from the launcher's own variables.

    An empty value takes the local variable of that name (none there: it stays empty); a glob with
    an empty value takes all matches; CI variables are always taken, unless `ci` is false: some are
    secret. What the user wrote wins.
    """
    resolved = {}
    imported = [name for name, value in environment.items() if not value]
    for pattern in (*(_FROM_LAUNCHER if ci else ()), *imported):
        matches = fnmatch.filter(local, pattern)
        resolved.update({name: local[name] for name in matches if _NAME.fullmatch(name)})
    for name, value in environment.items():
        if _NAME.fullmatch(name) and (value or name not in resolved):
            resolved[name] = value
    return resolved


def not_here(environment: Mapping[str, str], local: Mapping[str, str]) -> list[str]:
    """The names and globs that should be imported, and of which there is nothing."""
    return [
        name for name, value in environment.items() if not value and not fnmatch.filter(local, name)
    ]
