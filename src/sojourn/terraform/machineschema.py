"""The arguments and attributes of `iterative_machine`, and the task that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn import clouds
from sojourn.api.machine import IDLE_TIMEOUT, LIFETIME, machine_task
from sojourn.core.errors import InvalidInput, Problem
from sojourn.core.status import State
from sojourn.terraform.plugin.schema import BOOL, NUMBER, STRING, Attribute, Block, Schema, Type
from sojourn.terraform.plugin.values import Object, Unknown
from sojourn.terraform.sshkeys import public_key

if TYPE_CHECKING:
    from sojourn.core.task import Task
    from sojourn.taskfiles.changes import Fields

__all__ = ["MACHINE", "NO_SCRIPT", "OBSERVED", "RUNNER", "machine_of", "name_of", "notes_on"]

NO_SCRIPT = "#!/bin/bash"  # what the old provider took for none
_IMAGE_OF_OLD = "iterative-cml"
_GPU, _NO_GPU = "nvidia", "ubuntu"  # images for machines that name none
_GPUS = {"tesla": "v100"}
_TEXT_MAP = Type("map", STRING)
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_ENDED = [str(s) for s in State if s.ended and s is not State.STOPPED]  # which somebody wants


def _same(one: Any, other: Any) -> bool:
    """Nothing is the same as an empty text or map."""
    return bool(one == other) or (one in _EMPTY and other in _EMPTY)


def _argument(name: str, type: Type, description: str, **more: Any) -> Attribute:
    """An argument of which another value means another machine."""
    return Attribute(name, type, description, optional=True, replace=True, same=_same, **more)


def _cloud_arguments() -> list[Attribute]:
    """Those that only one cloud has."""
    found = [each for name in clouds.NAMES for each in clouds.about(name).machine_arguments]
    return [_argument(each.name, _TEXT_MAP if each.pairs else STRING, each.help) for each in found]


_ARGUMENTS = (
    _argument(
        "cloud", STRING, f"Cloud to run on: {clouds.any_of('`')}.", default=clouds.FOR_MACHINES
    ),
    _argument("region", STRING, "Cloud region or zone.", default="us-west"),
    _argument(
        "name", STRING, "Name of the machine, which becomes part of its `id`.", readable=False
    ),
    _argument(
        "image",
        STRING,
        f"Machine image; empty: `{_GPU}` with `instance_gpu`, else `{_NO_GPU}`.",
        default="",
        readable=False,
    ),
    _argument("instance_type", STRING, "Machine type.", default="m"),
    _argument("instance_gpu", STRING, "GPU of the machine type, such as `t4`.", default=""),
    _argument(
        "instance_hdd_size",
        NUMBER,
        "Disk size in GB; more if the image needs more.",
        default=10,
        readable=False,
    ),
    _argument(
        "instance_permission_set",
        STRING,
        "Cloud permissions of the machine; the format depends on the cloud.",
        default="",
    ),
    _argument("spot", BOOL, "Whether to use a spot machine.", default=False),
    _argument("spot_price", NUMBER, "Maximum spot price in USD per hour; `-1`: any.", default=-1),
    _argument(
        "startup_script",
        STRING,
        "Script to run on the machine, and again after it was lost; must start with a shebang.",
        default=NO_SCRIPT,
        sensitive=True,
        readable=False,
    ),
    _argument("metadata", _TEXT_MAP, "Tags of all cloud resources."),
    _argument(
        "timeout",
        NUMBER,
        "Seconds after which the machine ends; `0`: no limit.",
        default=LIFETIME,
    ),
    _argument(
        "idle_timeout",
        NUMBER,
        "Seconds after which an idle machine ends; `0`: no limit.",
        default=IDLE_TIMEOUT,
    ),
    *_cloud_arguments(),
    _argument("ami", STRING, "Old name of `image`."),
    _argument("instance_name", STRING, "Old name of `name`."),
)

# Of runners, in configurations that name the wrong resource.
RUNNER = ("repo", "driver", "labels", "token")
_RUNNER_ARGUMENTS = tuple(
    _argument(name, STRING, "Of runners, not of machines.", sensitive=name == "token")
    for name in RUNNER
)

OBSERVED = (
    Attribute("instance_ip", STRING, "IP address of the machine.", computed=True),
    Attribute("instance_launch_time", STRING, "When the machine started, in UTC.", computed=True),
    Attribute("ssh_public", STRING, "Public SSH key of the machine.", computed=True),
    Attribute("ssh_name", STRING, "Always empty.", computed=True),
    Attribute(
        "state",
        STRING,
        "State of the machine. One that has ended is replaced by the next apply.",
        computed=True,
        replace=True,
        over=lambda state: state in _ENDED,
    ),
)

MACHINE = Schema(
    Block(
        (
            Attribute("id", STRING, "ID of the machine, `tpi-...`.", computed=True),
            *_ARGUMENTS,
            Attribute(
                "ssh_private",
                STRING,
                "Private SSH key that opens the machine; without it, one is made.",
                optional=True,
                computed=True,
                sensitive=True,
                replace=True,
                same=_same,
                readable=False,
            ),
            *_RUNNER_ARGUMENTS,
            *OBSERVED,
        ),
        (),
        "Creates a machine that stays until it is destroyed, idle for too long, or out of time.",
    ),
    version=1,
    timeouts={"create": 1200.0, "read": 180.0, "update": 180.0, "delete": 1200.0},
)


def name_of(values: Object) -> str:
    """The name that the user gave it; empty, or not known yet: none."""
    for name in ("name", "instance_name"):
        if isinstance(values[name], str) and values[name]:
            return str(values[name])
    return ""


def notes_on(values: Object) -> list[str]:
    """What there is to say of arguments that are not what they were."""
    notes = [f"{old} is the old name of {new}" for old, new in _RENAMED.items() if values[old]]
    if _IMAGE_OF_OLD in (values["image"], values["ami"]):
        notes.append(
            f"The image {_IMAGE_OF_OLD} is no longer published; using {_image(values)!r} instead"
        )
    return notes


_RENAMED = {"ami": "image", "instance_name": "name"}
_FIELDS = {
    "machine": "instance_type",
    "disk_size": "instance_hdd_size",
    "permission_set": "instance_permission_set",
    "tags": "metadata",
    "script": "startup_script",
    "spot": "spot_price",
}


def machine_of(values: Object) -> Task:
    """The task of a machine; raises InvalidInput, which names arguments as this resource does.

    What is not known yet is taken for something valid. Without `ssh_private`, the machine has no
    key but its own.
    """
    problems = list(_problems(values))
    try:
        task = machine_task(_script(values), _fields(values))
    except InvalidInput as error:
        problems += [Problem(_FIELDS.get(p.path, p.path), p.message) for p in error.problems]
    if problems:
        raise InvalidInput(problems[0].path, problems[0].message, *problems[1:])
    return task


def _problems(values: Object) -> list[Problem]:
    wrong = [name for name in RUNNER if values[name] not in _EMPTY]
    if wrong:
        message = "belongs to a runner, which is another resource, iterative_cml_runner"
        return [Problem(name, message) for name in wrong]
    size = values["instance_hdd_size"]
    found = []
    if not isinstance(size, Unknown) and size is not None and (size < 1 or size != int(size)):
        found.append(Problem("instance_hdd_size", f"must be a whole number of GB, got {size}"))
    return [*found, *_strangers(values)]


def _strangers(values: Object) -> list[Problem]:
    """Arguments of another cloud would have no effect."""
    cloud = values["cloud"]
    if not isinstance(cloud, str):
        return []
    own = clouds.known(cloud)
    return [
        Problem(each.name, f"has no effect with cloud = {cloud!r}")
        for name in clouds.NAMES
        for each in clouds.about(name).machine_arguments
        if name != own
        and values[each.name] not in _EMPTY
        and not isinstance(values[each.name], Unknown)
    ]


def _script(values: Object) -> str:
    given = values["startup_script"]
    return given if isinstance(given, str) and given else NO_SCRIPT


def _fields(values: Object) -> Fields:
    fields: dict[str, Any] = {
        "cloud": _known(values["cloud"], clouds.FOR_MACHINES),
        "region": _known(values["region"], "us-west"),
        "machine": _machine(values),
        "image": _image(values),
        "disk_size": int(_known(values["instance_hdd_size"], 10)),
        "permission_set": _known(values["instance_permission_set"], ""),
        "spot": _spot(values),
        "tags": _texts(values["metadata"]),
        "timeout": _whole(_known(values["timeout"], LIFETIME)),
        "idle_timeout": _whole(_known(values["idle_timeout"], IDLE_TIMEOUT)),
        "options": {},
        "output": "",
    }
    own = clouds.known(str(fields["cloud"]))
    if own in clouds.NAMES:
        _add_cloud_arguments(own, values, fields)
        _add_key(own, values, fields)
    return fields  # type: ignore[return-value]


def _add_cloud_arguments(cloud: str, values: Object, fields: dict[str, Any]) -> None:
    for each in clouds.about(cloud).machine_arguments:
        given = values[each.name]
        if given in _EMPTY or isinstance(given, Unknown):
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
    kind = str(_known(values["instance_type"], "m"))
    gpu = str(_known(values["instance_gpu"], ""))
    return f"{kind}+{_GPUS.get(gpu, gpu)}" if gpu else kind


def _image(values: Object) -> str:
    given = _known(values["image"], "") or _known(values["ami"], "")
    if given and given != _IMAGE_OF_OLD:
        return str(given)
    return _GPU if _known(values["instance_gpu"], "") else _NO_GPU


def _spot(values: Object) -> float:
    price = float(_known(values["spot_price"], -1))
    if not _known(values["spot"], False):
        return -1
    return 0 if price == -1 else price


def _known(value: Any, otherwise: Any) -> Any:
    return otherwise if value is None or isinstance(value, Unknown) else value


def _whole(value: Any) -> Any:
    return int(value) if value == int(value) else value


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {
        key: "" if isinstance(item, Unknown) else item
        for key, item in value.items()
        if item is not None
    }
