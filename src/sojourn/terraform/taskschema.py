"""The arguments and attributes of `iterative_task`, and the task that they describe."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.task import DEFAULT_TIMEOUT, Storage, Task
from sojourn.terraform.plugin.schema import (
    NUMBER,
    STRING,
    Attribute,
    Block,
    Nested,
    Schema,
    Type,
)
from sojourn.terraform.plugin.values import Object, Unknown

__all__ = ["OBSERVED", "TASK", "storage_of", "task_of"]

_TEXTS = Type("list", STRING)
_TEXT_MAP = Type("map", STRING)
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _same_folder(one: Any, other: Any) -> bool:
    return bool(one) == bool(other) and os.path.abspath(one or "") == os.path.abspath(other or "")


def _same(one: Any, other: Any) -> bool:
    """Nothing is the same as an empty text, list or map."""
    return bool(one == other) or (one in _NOTHING and other in _NOTHING)


def _argument(name: str, type: Type, description: str, **more: Any) -> Attribute:
    """An argument of which another value means another task."""
    more.setdefault("optional", not more.get("required"))
    more.setdefault("same", _same)
    return Attribute(name, type, description, replace=True, **more)


_ARGUMENTS = (
    _argument("cloud", STRING, "Where the task runs.", required=True),
    _argument(
        "script",
        STRING,
        "The script to run; its first line, a shebang, says what runs it.",
        required=True,
    ),
    _argument("arguments", _TEXTS, "Arguments for the script: `$1`, `$2` and so on."),
    _argument("region", STRING, "The region or zone of the cloud.", default="us-west"),
    _argument("machine", STRING, "The type of machine.", default="m"),
    _argument(
        "disk_size", NUMBER, "Size of the machine's disk in GB; `-1`: automatic.", default=-1
    ),
    _argument(
        "spot",
        NUMBER,
        "`-1`: on demand; `0`: spot at an automatic price; more: the most to pay, in USD per hour.",
        default=-1,
    ),
    _argument("image", STRING, "The image that the machine starts from.", default="ubuntu"),
    _argument(
        "permission_set",
        STRING,
        "What the machine may do in the cloud; the form depends on the cloud.",
        default="",
    ),
    _argument("parallelism", NUMBER, "How many machines run the script.", default=1),
    _argument(
        "environment",
        _TEXT_MAP,
        "Variables for the script. An empty value takes the local one; a glob as a name with an "
        "empty value takes all that match.",
        sensitive=True,
        readable=False,
    ),
    _argument(
        "timeout",
        NUMBER,
        "Seconds that the script may run, from each start of a machine.",
        default=DEFAULT_TIMEOUT,
    ),
    _argument("tags", _TEXT_MAP, "Tags for all that is made in the cloud."),
    _argument(
        "name",
        STRING,
        "A name that always gives the same `id`. Discouraged: change the name of the resource.",
    ),
)

_STORAGE = Block(
    (
        _argument(
            "workdir",
            STRING,
            "The folder to upload, in which the script runs; blank: none.",
            default="",
            same=_same_folder,
        ),
        Attribute(
            "output",
            STRING,
            "The folder to bring home, relative to `workdir`; blank: none.",
            optional=True,
            default="",
        ),
        Attribute(
            "exclude",
            _TEXTS,
            "Patterns of files that are transferred in neither direction. With a leading `/` they "
            "start at `workdir`, otherwise they match at any depth; `**` crosses folders.",
            optional=True,
        ),
        _argument(
            "container",
            STRING,
            "An existing bucket, or `bucket/path`, to use instead of a new one.",
            default="",
        ),
        _argument(
            "container_opts",
            _TEXT_MAP,
            "Options for `container`, which depend on the cloud.",
            sensitive=True,
            readable=False,
        ),
    ),
    description="What travels with the script, and what comes home.",
)

OBSERVED = (
    Attribute("ssh_public_key", STRING, "Opens the machines.", computed=True, sensitive=True),
    Attribute("ssh_private_key", STRING, "Opens the machines.", computed=True, sensitive=True),
    Attribute("addresses", _TEXTS, "Addresses of the machines that are alive.", computed=True),
    Attribute(
        "status",
        Type("map", NUMBER),
        "How many machines are `running`, `succeeded` and `failed`.",
        computed=True,
    ),
    Attribute(
        "state",
        STRING,
        "The state of the task in one word: `queued`, `provisioning`, `running`, `recovering`, "
        "`succeeded`, `failed`, `timed-out` or `stopped`.",
        computed=True,
    ),
    Attribute("reason", STRING, "Why it is in this state, if there is more to say.", computed=True),
    Attribute("events", _TEXTS, "What the cloud tells of the machines.", computed=True),
    Attribute("logs", _TEXTS, "What the script printed: one text a machine.", computed=True),
)

TASK = Schema(
    Block(
        (
            Attribute("id", STRING, "The identifier of the task, `tpi-...`.", computed=True),
            *_ARGUMENTS,
            *OBSERVED,
        ),
        (Nested("storage", _STORAGE, at_most=1),),
        "A script with its data on a machine that is made for it, watched, and taken away again.",
    ),
    version=1,
    timeouts={"create": 900.0, "read": 180.0, "update": 180.0, "delete": 900.0},
)

# What is not given, and what is not known yet: some task in which nothing can be wrong.
_PLAIN = Task(script="#!/bin/sh")
_LATER = Task(script="#!/bin/sh", storage=Storage(container="bucket"))


def task_of(values: Object) -> Task:
    """The task that an object describes; raises InvalidInput if that is none.

    What is not known yet is taken for something valid.
    """
    fields = {a.name: values[a.name] for a in _ARGUMENTS}
    given = {name: _value(name, value, _PLAIN, _LATER) for name, value in fields.items()}
    problems: list[Problem] = []
    storage, task = Storage(), _PLAIN
    try:
        storage = storage_of(values)
    except InvalidInput as error:
        problems += error.problems
    try:
        task = Task(**given, storage=storage)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(problems[0].path, problems[0].message, *problems[1:])
    return task


def storage_of(values: Object) -> Storage:
    """The storage block that an object has, or the defaults."""
    blocks = values["storage"]
    if isinstance(blocks, Unknown) or not blocks:
        return Storage(output="")
    absent, later = _PLAIN.storage, _LATER.storage
    given = {name: _value(name, value, absent, later) for name, value in blocks[0].items()}
    return Storage(**{**given, "output": given.get("output") or ""})  # blank: download nothing


def _value(name: str, value: Any, absent: Task | Storage, later: Task | Storage) -> Any:
    if value is None:
        return getattr(absent, name)
    if isinstance(value, Unknown):
        return getattr(later, name)
    if isinstance(value, list):
        return tuple(item for item in value if not isinstance(item, Unknown))
    if isinstance(value, dict):
        return {
            key: "" if isinstance(item, Unknown) else item
            for key, item in value.items()
            if item is not None
        }
    return float(value) if name == "spot" or isinstance(value, Decimal) else value
