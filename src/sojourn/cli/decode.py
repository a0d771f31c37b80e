"""From the plain data of a parsed file to a task, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from sojourn.cli.reading import located, unknown
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.task import Storage, Task

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["STORAGE_FIELDS", "TASK_FIELDS", "decode_task"]

TASK_FIELDS = tuple(Task.__dataclass_fields__)
STORAGE_FIELDS = tuple(Storage.__dataclass_fields__)

T = TypeVar("T")


def decode_task(data: Mapping[str, Any], where: str, folder: Path) -> Task:
    """Decode a task; all its problems are raised at once, each named with `where` it is.

    A relative `storage.workdir` is taken from `folder`.
    """
    problems = _unknown_fields(data)
    own = {key: value for key, value in data.items() if key != "storage"}
    storage = _convert(data.get("storage", {}), Storage, "storage", problems)
    task = _convert(own, Task, "", problems)
    if problems or task is None or storage is None:
        raise located(where, problems)
    if storage.workdir:
        storage = replace(storage, workdir=str((folder / storage.workdir).resolve()))
    return replace(task, storage=storage)


def _unknown_fields(data: Mapping[str, Any]) -> list[Problem]:
    problems = [unknown(key, TASK_FIELDS) for key in data if key not in TASK_FIELDS]
    storage = data.get("storage")
    if isinstance(storage, Mapping):
        problems += [
            unknown(f"storage.{key}", STORAGE_FIELDS)
            for key in storage
            if key not in STORAGE_FIELDS
        ]
    return problems


def _convert(data: Any, kind: type[T], prefix: str, problems: list[Problem]) -> T | None:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        problems.append(_problem(str(error), prefix))
    except InvalidInput as error:
        problems += error.problems
    return None


_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "empty",
    "object": "a map",
    "str": "a text",
}


def _problem(message: str, prefix: str) -> Problem:
    missing = re.fullmatch(r"Object missing required field `(\w+)`", message)
    if missing:
        return Problem(missing[1], "is required")
    wrong = re.fullmatch(r"Expected `([\w| ]+)`, got `(\w+)`(?: - at `\$\.?(.*)`)?", message)
    if not wrong:
        return Problem(prefix, message)
    expected, got = (_WORDS.get(kind, f"a {kind}") for kind in wrong.group(1, 2))
    path = ".".join(part for part in (prefix, wrong[3]) if part)
    if wrong.group(1, 2) == ("int", "float"):
        got = "one with a fraction"
    return Problem(path, f"must be {expected}, not {got}")
