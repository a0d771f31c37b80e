"""The arguments of a machine, whatever it is for, and what of a task they set."""

from __future__ import annotations

import re
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sojourn import clouds
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.status import State
from sojourn.core.task import DEFAULT_REGION
from sojourn.terraform.plugin.schema import BOOL, NUMBER, STRING, Attribute, Type
from sojourn.terraform.plugin.values import Object, Unknown
from sojourn.terraform.sshkeys import public_key
from sojourn.terraform.startupscript import of_cloud_init
from sojourn.terraform.taskschema import region_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "EMPTY",
    "ENDED",
    "KEY",
    "OBSERVED",
    "argument",
    "arguments",
    "fields_of",
    "known",
    "name_of",
    "naming_arguments",
    "notes_on",
    "problems_in",
    "whole",
]

EMPTY: tuple[Any, ...] = (None, "", [], {})
ENDED = [str(s) for s in State if s.ended and s is not State.STOPPED]  # which somebody wants
_DECIMALS = 5  # of prices, as in the old provider
_IMAGE_OF_OLD = "iterative-cml"
_GPU, _NO_GPU = "nvidia", "ubuntu"  # images for machines that name none
_GPUS = {"tesla": "v100", "testla": "v100"}  # a table of the old pages has it misspelt
_WITH_GPU = re.compile(r"(?:use|such as) (s|m|l|xl)\+([a-z]\w*)")
_TEXT_MAP = Type("map", STRING)


def _same(one: Any, other: Any) -> bool:
    """Nothing is the same as an empty text or map."""
    return bool(one == other) or (one in EMPTY and other in EMPTY)


def argument(name: str, type: Type, description: str, **more: Any) -> Attribute:
    """An argument of which another value means another machine."""
    return Attribute(
        name, type, description, optional=True, **{"replace": True, "same": _same, **more}
    )


def arguments(named: str) -> tuple[Attribute, ...]:
    """Those that describe a machine. `named`: what `name` is."""
    return (
        argument(
            "cloud", STRING, f"Cloud to run on: {clouds.any_of('`')}.", default=clouds.FOR_MACHINES
        ),
        argument(
            "region",
            STRING,
            "Cloud region or zone.",
            default=DEFAULT_REGION,
            default_in=region_in,
        ),
        argument("name", STRING, named, readable=False),
        argument(
            "image",
            STRING,
            f"Machine image; empty: `{_GPU}` with `instance_gpu`, else `{_NO_GPU}`.",
            default="",
            readable=False,
        ),
        argument("instance_type", STRING, "Machine type.", default="m"),
        argument("instance_gpu", STRING, "GPU of the machine type, such as `t4`.", default=""),
        argument(
            "instance_hdd_size",
            NUMBER,
            "Disk size in GB; more if the image needs more.",
            default=10,
            readable=False,
        ),
        argument(
            "instance_permission_set",
            STRING,
            "Cloud permissions of the machine; the format depends on the cloud.",
            default="",
        ),
        argument("spot", BOOL, "Whether to use a spot machine.", default=False),
        argument(
            "spot_price", NUMBER, "Maximum spot price in USD per hour; `-1`: any.", default=-1
        ),
        argument("metadata", _TEXT_MAP, "Tags of all cloud resources."),
        *_of_one_cloud(),
    )


def _of_one_cloud() -> list[Attribute]:
    found = [each for name in clouds.KINDS for each in clouds.about(name).machine_arguments]
    return [argument(each.name, _TEXT_MAP if each.pairs else STRING, each.help) for each in found]


KEY = Attribute(
    "ssh_private",
    STRING,
    "Private SSH key that opens the machine; without it, one is made.",
    optional=True,
    computed=True,
    sensitive=True,
    replace=True,
    same=_same,
    readable=False,
)

OBSERVED = (
    Attribute("instance_ip", STRING, "IP address of the machine.", computed=True),
    Attribute("instance_launch_time", STRING, "When the machine started, in UTC.", computed=True),
    Attribute("ssh_public", STRING, "Public SSH key of the machine.", computed=True),
)


def name_of(values: Object) -> str:
    """The name that the user gave it; empty, or not known yet: none."""
    for name in ("name", "instance_name"):
        if isinstance(values.get(name), str) and values[name]:
            return str(values[name])
    return ""


def notes_on(values: Object) -> list[str]:
    """What there is to say of arguments that are not what they were."""
    notes = [f"{old} is the old name of {new}" for old, new in _RENAMED.items() if values.get(old)]
    if _IMAGE_OF_OLD in (values["image"], values.get("ami")):
        notes.append(
            f"The image {_IMAGE_OF_OLD} is no longer published; using {_image(values)!r} instead"
        )
    idle = [
        each.name
        for name in clouds.KINDS
        for each in clouds.about(name).machine_arguments
        if not each.target and values[each.name] not in EMPTY
    ]
    return notes + [f"{name} has no effect any more" for name in idle]


_RENAMED = {"ami": "image", "instance_name": "name"}
_FIELDS = {
    "machine": "instance_type",
    "disk_size": "instance_hdd_size",
    "permission_set": "instance_permission_set",
    "tags": "metadata",
    "script": "startup_script",
    "spot": "spot_price",
}


@contextmanager
def naming_arguments(*more: Problem) -> Iterator[None]:
    """Let problems out by the names that arguments have here, after those found before."""
    try:
        yield
    except InvalidInput as error:
        own = [Problem(_FIELDS.get(p.path, p.path), _in_two(p.message)) for p in error.problems]
        raise _refusal([*more, *own], error.hint) from error
    if more:
        raise _refusal(more)


def _in_two(message: str) -> str:
    """With how to write here what messages about machines call `m+t4`."""
    found = _WITH_GPU.search(message)
    if not found:
        return message
    kind, gpu = found.groups()
    return f'{message} ({kind}+{gpu} is instance_type = "{kind}" with instance_gpu = "{gpu}")'


def _refusal(problems: Sequence[Problem], hint: str = "") -> InvalidInput:
    refused = InvalidInput.of(problems)
    refused.hint = hint
    return refused


def problems_in(values: Object) -> list[Problem]:
    """What a task would not find."""
    size = values["instance_hdd_size"]
    found = []
    if not isinstance(size, Unknown) and size is not None and (size < 1 or size != int(size)):
        found.append(Problem("instance_hdd_size", f"must be a whole number of GB, got {size}"))
    return [*found, *_price_problems(values), *_cloud_config(values), *_strangers(values)]


def _price_problems(values: Object) -> list[Problem]:
    """Some clouds would round it, and so pay more than was allowed."""
    price = values["spot_price"]
    if price is None or isinstance(price, Unknown):
        return []
    if round(Decimal(str(price)), _DECIMALS) == Decimal(str(price)):
        return []
    return [Problem("spot_price", f"must have at most {_DECIMALS} decimals, got {price}")]


def _cloud_config(values: Object) -> list[Problem]:
    script = values["startup_script"]
    name = of_cloud_init(script) if isinstance(script, str) else ""
    if not name:
        return []
    return [
        Problem(
            "startup_script",
            f"is {name}, which is not supported: write the same as a script that starts with "
            "#!/bin/bash",
        )
    ]


def _strangers(values: Object) -> list[Problem]:
    """Arguments of another cloud would have no effect."""
    cloud = values["cloud"]
    if not isinstance(cloud, str):
        return []
    own = clouds.kind_of(cloud) if clouds.exists(cloud) else cloud
    return [
        Problem(each.name, f"has no effect with cloud = {cloud!r}")
        for name in clouds.KINDS
        for each in clouds.about(name).machine_arguments
        if name != own
        and values[each.name] not in EMPTY
        and not isinstance(values[each.name], Unknown)
    ]


def fields_of(values: Object) -> dict[str, Any]:
    """The fields of a task that they set. What is not known yet is taken for something valid."""
    fields: dict[str, Any] = {
        "cloud": known(values["cloud"], clouds.FOR_MACHINES),
        "region": known(values["region"], ""),
        "machine": _machine(values),
        "image": _image(values),
        "disk_size": int(known(values["instance_hdd_size"], 10)),
        "permission_set": known(values["instance_permission_set"], ""),
        "spot": _spot(values),
        "tags": _texts(values["metadata"]),
        "options": {},
        "output": "",
    }
    if clouds.exists(str(fields["cloud"])):
        own = clouds.kind_of(str(fields["cloud"]))
        _add_cloud_arguments(own, values, fields)
        _add_key(own, values, fields)
    return fields


def _add_cloud_arguments(cloud: str, values: Object, fields: dict[str, Any]) -> None:
    for each in clouds.about(cloud).machine_arguments:
        given = values[each.name]
        if not each.target or given in EMPTY or isinstance(given, Unknown):
            continue
        text = ",".join(f"{k}={v}" for k, v in _texts(given).items()) if each.pairs else str(given)
        first, _, option = each.target.partition(".")
        if option:
            fields[first][option] = text
        else:
            fields[first] = text


def _add_key(cloud: str, values: Object, fields: dict[str, Any]) -> None:
    private = values["ssh_private"]
    if isinstance(private, str) and private:
        public = public_key(private)
        if any(name == "ssh_key" for name, _ in clouds.about(cloud).options):
            fields["options"]["ssh_key"] = public


def _machine(values: Object) -> str:
    kind = str(known(values["instance_type"], "m"))
    gpu = str(known(values["instance_gpu"], ""))
    return f"{kind}+{_GPUS.get(gpu, gpu)}" if gpu else kind


def _image(values: Object) -> str:
    given = known(values["image"], "") or known(values.get("ami"), "")
    if given and given != _IMAGE_OF_OLD:
        return str(given)
    return _GPU if known(values["instance_gpu"], "") else _NO_GPU


def _spot(values: Object) -> float:
    price = float(known(values["spot_price"], -1))
    if not known(values["spot"], False):
        return -1
    return 0 if price == -1 else price


def known(value: Any, otherwise: Any) -> Any:
    """The value, if it is there and known."""
    return otherwise if value is None or isinstance(value, Unknown) else value


def whole(value: Any) -> Any:
    """An int, if the value is one."""
    return int(value) if value == int(value) else value


def _texts(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        key: "" if isinstance(item, Unknown) else item
        for key, item in value.items()
        if item is not None
    }
