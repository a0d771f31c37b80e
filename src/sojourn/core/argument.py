"""How an argument of a task is declared: once, at its field, for every front end that has it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

__all__ = [
    "COUNT",
    "DURATION",
    "FLAG",
    "MACHINE",
    "MPI",
    "PAIRS",
    "PATH",
    "PRICE",
    "REQUIRED",
    "TASK",
    "TEXT",
    "TEXTS",
    "Argument",
    "Kind",
    "argument",
    "arguments_of",
]

_KEY = "argument"


class Kind(Enum):
    """What is written for it."""

    TEXT = "text"
    PATH = "path"  # of this computer
    COUNT = "count"  # a whole number
    PRICE = "price"
    DURATION = "duration"  # seconds, or a text such as 1h30m
    FLAG = "flag"
    TEXTS = "texts"  # a list
    PAIRS = "pairs"  # a map of texts to texts


TEXT, PATH, COUNT, PRICE = Kind.TEXT, Kind.PATH, Kind.COUNT, Kind.PRICE
DURATION, FLAG, TEXTS, PAIRS = Kind.DURATION, Kind.FLAG, Kind.TEXTS, Kind.PAIRS

# What a command makes: a task, a machine that stays (or a runner on one), an MPI program's task.
TASK, MACHINE, MPI = "task", "machine", "mpi"


@dataclass(frozen=True)
class Argument:
    """What front ends know of an argument.

    `help`: on the command line. Empty: it is no option. `description`: in Terraform. Empty: it is
    no argument there. `{clouds}` stands for their names in both.
    `option`: its name on the command line, if that is not the field's own. `metavar`: what stands
    for its value. `of`: which commands have it.
    `of_machine`: it describes the machine that a cloud rents out. `secret`: nobody shows its value.
    `in_place`: it can change without a new task.
    """

    kind: Kind
    help: str = ""
    description: str = ""
    option: str = ""
    metavar: str = ""
    of: tuple[str, ...] = (TASK, MACHINE, MPI)
    of_machine: bool = False
    secret: bool = False
    in_place: bool = False


REQUIRED: Any = object()
"""In place of a default."""


def argument(
    default: Any,
    kind: Kind,
    help: str = "",
    description: str = "",
    *,
    shown: bool = True,
    **more: Any,
) -> Any:
    """A field of a frozen dataclass that users set; `more` is what an `Argument` has beside these.

    `shown`: whether its value is part of the representation.
    """
    declared = Argument(kind, help, description, **more)
    how: dict[str, Any] = {"default": default}
    if default is REQUIRED:
        how = {}
    elif isinstance(default, dict):
        how = {"default_factory": dict}
    return field(**how, repr=shown and not declared.secret, metadata={_KEY: declared})


def arguments_of(holder: type) -> dict[str, Argument]:
    """The arguments of a dataclass, by their fields."""
    return {each.name: each.metadata[_KEY] for each in fields(holder) if _KEY in each.metadata}
