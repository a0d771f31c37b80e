"""The arguments and attributes of `iterative_task`, and the task that they describe."""

from __future__ import annotations

import os
from dataclasses import MISSING, fields, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sojourn import clouds
from sojourn.core.argument import (
    COUNT,
    DURATION,
    FLAG,
    PAIRS,
    PRICE,
    TEXTS,
    Argument,
    arguments_of,
)
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.gang import Mpi
from sojourn.core.task import DEFAULT_REGION, Storage, Task
from sojourn.terraform.plugin.schema import (
    BOOL,
    NUMBER,
    STRING,
    Attribute,
    Block,
    Nested,
    Schema,
    Type,
)
from sojourn.terraform.plugin.values import UNKNOWN, Object, Unknown, is_known

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OBSERVED", "TASK", "region_in", "settled", "storage_of", "task_of"]

_TEXTS = Type("list", STRING)
_TEXT_MAP = Type("map", STRING)
_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _same_folder(one: Any, other: Any) -> bool:
    return bool(one) == bool(other) and os.path.abspath(one or "") == os.path.abspath(other or "")


def _same(one: Any, other: Any) -> bool:
    """Nothing is the same as an empty text, list or map."""
    return bool(one == other) or (one in _NOTHING and other in _NOTHING)


def _same_unless_false(one: Any, other: Any) -> bool:
    return (one is False) == (other is False)


def _mpi(given: Any) -> Any:
    """Of a map of texts; what is not known yet, or is no such thing, is left for others to see."""
    if not isinstance(given, dict):
        return given
    slots = given.get("slots")
    number = int(slots) if isinstance(slots, str) and slots.isdecimal() else slots
    return {**given, "slots": number} if slots is not None else given


def _gang_by_mpi(config: Mapping[str, Any], prior: Mapping[str, Any] | None) -> Any:
    mpi = config.get("mpi")
    return UNKNOWN if isinstance(mpi, Unknown) else mpi is not None


def region_in(config: Mapping[str, Any], prior: Mapping[str, Any] | None) -> Any:
    """The region of a configuration that names none: that of its cloud, as settings name it.

    What is there stays where it is if the settings change.
    """
    cloud = config.get("cloud")
    if prior and cloud and cloud == prior.get("cloud") and clouds.is_named(cloud):
        return prior["region"]
    if isinstance(cloud, Unknown):
        return UNKNOWN
    # An unknown cloud is refused elsewhere.
    return clouds.region_of(cloud if cloud and clouds.exists(cloud) else clouds.FOR_MACHINES)


def _same_mpi(one: Any, other: Any) -> bool:
    """What is not said is the default."""
    if one is None or other is None:
        return one is other
    return Mpi(**_mpi(one)) == Mpi(**_mpi(other))


_TYPES = {
    COUNT: NUMBER,
    DURATION: NUMBER,
    FLAG: BOOL,
    PAIRS: _TEXT_MAP,
    PRICE: NUMBER,
    TEXTS: _TEXTS,
}
# As they stand on the page; one that is not named here comes last.
_ORDER = (
    *("cloud", "script", "arguments", "region", "machine", "disk_size", "spot", "image"),
    *("permission_set", "parallelism", "gang", "gang_timeout", "mpi", "files", "environment"),
    *("timeout", "stay", "idle_timeout", "tags", "mounts", "options", "name"),
    *("workdir", "output", "exclude", "default_ignore", "container", "container_opts"),
)
# What Terraform needs to know beside the declaration of an argument.
_MORE: dict[str, dict[str, Any]] = {
    "cloud": {"required": True, "default": None},  # a configuration says where it runs
    "script": {"required": True},
    "region": {"default": DEFAULT_REGION, "default_in": region_in},
    "gang": {"default_in": _gang_by_mpi},
    "mpi": {"type": _TEXT_MAP, "same": _same_mpi},
    "name": {"default": None},
    "workdir": {"same": _same_folder},
    "output": {"default": ""},
    "default_ignore": {"default": None, "same": _same_unless_false},
}


def _attributes(holder: type) -> tuple[Attribute, ...]:
    """The arguments of a dataclass that Terraform has as well."""
    declared = {name: each for name, each in arguments_of(holder).items() if each.description}
    defaults = {each.name: each.default for each in fields(holder)}
    return tuple(
        _attribute(name, declared[name], defaults[name])
        for name in dict.fromkeys((*_ORDER, *declared))
        if name in declared
    )


def _attribute(name: str, declared: Argument, default: Any) -> Attribute:
    """One of them; another value means another task, unless it can change in place."""
    more: dict[str, Any] = {"type": _TYPES.get(declared.kind, STRING)}
    if declared.kind not in (TEXTS, PAIRS) and default is not MISSING:
        more["default"] = default
    if declared.secret:
        more |= {"sensitive": True, "readable": False}
    if not declared.in_place:
        more |= {"replace": True, "same": _same}
    more |= _MORE.get(name, {})
    more.setdefault("optional", not more.get("required"))
    description = declared.description.replace("{clouds}", clouds.any_of("`"))
    return Attribute(name, description=description, **more)


_ARGUMENTS = _attributes(Task)
_STORAGE = Block(_attributes(Storage), description="What to upload and download.")

OBSERVED = (
    Attribute(
        "ssh_public_key", STRING, "Public SSH key of the machines.", computed=True, sensitive=True
    ),
    Attribute(
        "ssh_private_key", STRING, "Private SSH key of the machines.", computed=True, sensitive=True
    ),
    Attribute("addresses", _TEXTS, "IP addresses of running machines.", computed=True),
    Attribute(
        "status",
        Type("map", NUMBER),
        "Number of machines that are `running`, `succeeded` and `failed`.",
        computed=True,
    ),
    Attribute(
        "state",
        STRING,
        "State of the task: `queued`, `provisioning`, `running`, `recovering`, `storing`, "
        "`succeeded`, `failed`, `timed-out` or `stopped`.",
        computed=True,
    ),
    Attribute("reason", STRING, "Reason for the state, if any.", computed=True),
    Attribute(
        "events", _TEXTS, "Events of the machines, as the cloud reports them.", computed=True
    ),
    Attribute("logs", _TEXTS, "Output of the script: one string per machine.", computed=True),
)

TASK = Schema(
    Block(
        (
            Attribute("id", STRING, "ID of the task, `tpi-...`.", computed=True),
            *_ARGUMENTS,
            Attribute(
                "wait",
                BOOL,
                "Whether `apply` waits for the end of the script, and fails if the script fails; "
                "`timeouts.create`, if set, limits the wait as well (default: `false`).",
                optional=True,
            ),
            Attribute(
                "log_file",
                STRING,
                "With `wait`, local file to write the output of the script to when it has ended, "
                "also if it failed; of several machines, that of the first. A former file is kept "
                "as `NAME.1.txt` and so on.",
                optional=True,
            ),
            *OBSERVED,
        ),
        (Nested("storage", _STORAGE, at_most=1),),
        "Runs a script with its data on a temporary machine.",
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
    given["mpi"] = _mpi(given["mpi"])
    problems: list[Problem] = []
    storage, task = Storage(), _PLAIN
    if values.get("log_file") and values.get("wait") in (None, False):
        problems.append(Problem("log_file", "needs wait = true"))
    if values["gang"] is False and values["mpi"] is not None:
        problems.append(Problem("gang", "must not be false with mpi"))
    try:
        storage = storage_of(values)
    except InvalidInput as error:
        problems += error.problems
    try:
        task = Task(**given, storage=storage)
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput.of(problems)
    return task


def settled(values: Object) -> Task:
    """The same without what could be wrong only for what is not known yet beside it."""
    task = task_of(values)
    options, storage = dict(task.options), task.storage
    if isinstance(values["image"], Unknown):
        options.pop("vm_image", None)  # which goes with some images only
    given = values["storage"]
    blocks = given if isinstance(given, list) else []
    places = [block.get(name) for block in blocks for name in ("container", "container_opts")]
    if not is_known(places):
        storage = replace(storage, container="", container_opts={})
    mounts = {at: what for at, what in task.mounts.items() if what}
    return replace(task, options=options, storage=storage, mounts=mounts)


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
        known = {key: item for key, item in value.items() if item is not None}
        if name == "mpi":  # its defaults are as valid as what is not known yet
            return {key: item for key, item in known.items() if not isinstance(item, Unknown)}
        return {key: "" if isinstance(item, Unknown) else item for key, item in known.items()}
    price = isinstance(absent, Task) and arguments_of(Task)[name].kind is PRICE
    return float(value) if price or isinstance(value, Decimal) else value
