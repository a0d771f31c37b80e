"""Defaults for the arguments of tasks: `[defaults]` and `[profiles.NAME]` of settings files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sojourn.core.argument import PAIRS, PATH, Argument, arguments_of
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.task import Storage, Task
from sojourn.settings import OWN, documents
from sojourn.taskfiles.decode import decode_fields
from sojourn.taskfiles.reading import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sojourn.settings import Document

__all__ = ["ARGUMENTS", "Default", "every_default", "merged", "profiles"]

_DEFAULTS, _PROFILES = ("defaults",), ("profiles",)
_EACH_TASK = ("script", "arguments")  # what a task is, not how it runs

ARGUMENTS: Mapping[str, Argument] = {
    name: each
    for name, each in (arguments_of(Task) | arguments_of(Storage)).items()
    if name not in _EACH_TASK
}
"""All that can have a default, by the names of keyword arguments."""


@dataclass(frozen=True)
class Default:
    """One value of a settings file. `name`: the argument; `table`: the one that it stands in."""

    name: str
    value: Any
    table: tuple[str, ...]
    document: Document

    @property
    def profile(self) -> str:
        """The profile that it belongs to; empty: it is for all tasks."""
        return self.table[1] if self.table[:1] == _PROFILES else ""

    @property
    def origin(self) -> str:
        """The file and line that it stands on."""
        return self.document.origin((*self.table, self.name))


def every_default(profile: str = "") -> list[Default]:
    """What applies to tasks, the weakest first: defaults before the profile, and in each of them
    the user's before the project's. There is no such profile: raises InvalidInput."""
    there = documents()
    tables: list[tuple[Document, tuple[str, ...]]] = [(each, _DEFAULTS) for each in there]
    if profile:
        if profile not in profiles():
            known = ", ".join(profiles()) or "none"
            raise InvalidInput("profile", f"unknown profile {profile!r} (available: {known})")
        tables += [(document, (*_PROFILES, profile)) for document in there]
    return [each for document, table in tables for each in _read(document, table)]


def profiles() -> list[str]:
    """The names of all profiles."""
    return sorted({name for document in documents() for name in document.table(*_PROFILES)})


def merged(defaults: Iterable[Default]) -> dict[str, Default]:
    """The one of each argument that counts; variables of the environment add up."""
    found: dict[str, Default] = {}
    for each in defaults:
        below = found.get(each.name)
        value = each.value
        if each.name == "environment" and below:
            value = {**below.value, **value}
        found[each.name] = replace(each, value=value)
    return found


def _read(document: Document, table: tuple[str, ...]) -> list[Default]:
    data = dict(document.table(*table))
    problems: list[Problem] = []
    for name in [*data]:
        if name not in ARGUMENTS:
            problems.append(unknown(name, ARGUMENTS))
            del data[name]
        elif ARGUMENTS[name].secret:
            data[name] = _without_secrets(document, name, data[name], problems)
    values = decode_fields(data, problems)
    if problems:
        raise InvalidInput.of([_located(document, table, each) for each in problems])
    for name, each in ARGUMENTS.items():
        if each.kind is PATH and values.get(name):
            values[name] = _path(document, (*table, name), values[name])
    return [Default(name, value, table, document) for name, value in values.items()]


def _located(document: Document, table: tuple[str, ...], problem: Problem) -> Problem:
    keys = (*table, *problem.path.split("."))
    return Problem(f"{document.origin(keys)}: {'.'.join(keys)}", problem.message)


def _path(document: Document, keys: tuple[str, ...], path: str) -> str:
    """One of a project is the same from each of its folders, and is one of them."""
    if not document.project:
        return os.path.expanduser(path)
    top = os.path.realpath(document.path.parent)
    found = os.path.normpath(os.path.join(top, path))
    if os.path.commonpath((top, os.path.realpath(found))) != top:
        raise document.problem(keys, f"must be inside the project, got {path!r}")
    return found


def _without_secrets(document: Document, name: str, value: Any, problems: list[Problem]) -> Any:
    """Settings name variables, or globs; what is in them comes from whoever runs the command.

    Which of them travel is for the user to say, and not for a project that may be a stranger's.
    """
    if name == "environment" and document.project:
        problems.append(Problem(name, f"not for a project; list your variables in {OWN}"))
        return {}
    if ARGUMENTS[name].kind is not PAIRS or name != "environment":
        problems.append(Problem(name, "not supported in settings, which hold no secrets"))
        return {}
    if isinstance(value, list):
        value = {each: "" for each in value if isinstance(each, str)}
    if isinstance(value, dict):
        problems += [
            Problem(
                f"{name}.{variable}",
                "must be empty, to copy the variable of your shell: settings hold no secrets",
            )
            for variable, text in value.items()
            if text != ""
        ]
    return value
