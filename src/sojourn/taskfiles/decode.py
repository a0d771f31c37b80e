"""From the plain data of a parsed file to a task, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, get_origin, get_type_hints

import msgspec

from sojourn.core.argument import DURATION, Kind, arguments_of
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.gang import Mpi
from sojourn.core.task import Storage, Task
from sojourn.taskfiles.reading import Source, unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["FIELDS", "INNER", "KINDS", "decode_fields", "decode_task", "paths_of", "said_in"]

KINDS: dict[type, dict[str, Any]] = {
    Mpi: get_type_hints(Mpi),
    Storage: get_type_hints(Storage),
    Task: {
        **get_type_hints(Task),
        # A number or "1h30m": the task knows.
        **{name: Any for name, each in arguments_of(Task).items() if each.kind is DURATION},
        "mpi": Mpi,
    },
}
FIELDS = (
    *KINDS[Task],
    *(f"storage.{name}" for name in KINDS[Storage]),
    *(f"mpi.{name}" for name in KINDS[Mpi]),
)
"""All that can be written, by their whole names."""

INNER = {"storage": Storage, "mpi": Mpi}
"""What is itself a map of fields."""

_SOME_SCRIPT = "#!/bin/sh"  # in place of one that is missing, to look at all the others

T = TypeVar("T")


def paths_of(kind: Kind) -> tuple[str, ...]:
    """The whole names of all arguments of a kind."""
    inner = {f"{name}.": holder for name, holder in INNER.items()}
    return tuple(
        prefix + name
        for prefix, holder in {"": Task, **inner}.items()
        for name, each in arguments_of(holder).items()
        if each.kind is kind
    )


def decode_task(
    data: Mapping[str, Any], source: Source, folder: Path, problems: Sequence[Problem] = ()
) -> Task:
    """Decode a task; all its problems, those found before included, are raised at once.

    A relative `storage.workdir` is taken from `folder`.
    """
    found: list[Problem] = []
    storage = _inner(data.get("storage", {}), Storage, "storage", found)
    values = _fields({k: v for k, v in data.items() if k not in INNER}, Task, "", found)
    if "mpi" in data:
        values["mpi"] = _inner(data["mpi"], Mpi, "mpi", found)
        if data.get("gang") is False:
            found.append(Problem("gang", "must not be false with mpi"))
    if "script" not in data:
        found.append(Problem("script", "required"))
    values.setdefault("script", _SOME_SCRIPT)
    task = _made(Task, values, found)
    seen = {problem.path for problem in problems}
    every = [*problems, *(problem for problem in found if problem.path not in seen)]
    if every or task is None or storage is None:
        raise source.refusal(every)
    if storage.workdir:
        storage = replace(storage, workdir=str((folder / storage.workdir).resolve()))
    return replace(task, storage=storage)


def said_in(data: Mapping[str, Any]) -> frozenset[str]:
    """The arguments that data says something of, by the names of keyword arguments."""
    storage = data.get("storage", {})
    inner = storage if isinstance(storage, Mapping) else {}
    return frozenset((*data, *inner)) - {"storage"}


def decode_fields(data: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """Arguments by the names of keyword arguments, each with the right type; gathers problems.

    A map for `mpi` stays one, so that it can be put on top of another one.
    """
    inner = {name: value for name, value in data.items() if name in KINDS[Storage]}
    own = {name: value for name, value in data.items() if name not in (*inner, "mpi")}
    values = _fields(own, Task, "", problems) | _fields(inner, Storage, "", problems)
    if "mpi" in data:
        _inner(data["mpi"], Mpi, "mpi", problems)
        values["mpi"] = data["mpi"]
    return values


def _inner(data: Any, kind: type[T], name: str, problems: list[Problem]) -> T | None:
    """What is itself a map of fields."""
    if not isinstance(data, Mapping):
        problems.append(_converted(data, dict[str, Any], name))
        return None
    return _made(kind, _fields(data, kind, f"{name}.", problems), problems)


def _fields(
    data: Mapping[str, Any], kind: type, prefix: str, problems: list[Problem]
) -> dict[str, Any]:
    """Those that have the right type; each one alone, as the first problem is not the only one."""
    values = {}
    for name, value in data.items():
        if name not in KINDS[kind]:
            problems.append(unknown(prefix + name, FIELDS))
            continue
        try:
            values[name] = msgspec.convert(value, KINDS[kind][name])
        except msgspec.ValidationError as error:
            problems += _problems(value, KINDS[kind][name], prefix + name, str(error))
    return values


def _problems(value: Any, kind: Any, path: str, message: str) -> list[Problem]:
    """What is wrong with a field; items of a map by their names, which msgspec does not tell."""
    if get_origin(kind) is not Mapping or not isinstance(value, Mapping):
        return [_problem(message, path)]
    wrong = {key: item for key, item in value.items() if not isinstance(item, str)}
    return [_converted(item, str, f"{path}.{key}") for key, item in wrong.items()]


def _converted(value: Any, kind: Any, path: str) -> Problem:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return _problem(str(error), path)
    raise AssertionError(f"{path} is not wrong")


def _made(kind: type[T], values: dict[str, Any], problems: list[Problem]) -> T | None:
    try:
        return kind(**values)
    except InvalidInput as error:
        problems += error.problems
    return None


_WORDS = {
    "array": "a list",
    "bool": "a boolean",
    "float": "a number",
    "int": "a whole number",
    "null": "null",
    "object": "a map",
    "str": "a string",
}


def _problem(message: str, path: str) -> Problem:
    wrong = re.fullmatch(r"Expected `(\w+)`, got `(\w+)`(?: - at `\$(.*)`)?", message)
    if not wrong:
        return Problem(path, message)
    expected = _named(wrong[1])
    got = "a fraction" if wrong.group(1, 2) == ("int", "float") else _named(wrong[2])
    return Problem(path + (wrong[3] or ""), f"must be {expected}, got {got}")


def _named(kind: str) -> str:
    return _WORDS.get(kind, f"a {kind}")
