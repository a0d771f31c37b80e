"""The arguments and attributes of `iterative_machine`, and the task that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.api.machine import IDLE_TIMEOUT, LIFETIME, machine_task
from sojourn.core.errors import Problem
from sojourn.core.runner import Runner
from sojourn.terraform.machinearguments import (
    EMPTY,
    ENDED,
    KEY,
    OBSERVED,
    argument,
    arguments,
    fields_of,
    known,
    naming_arguments,
    problems_in,
    whole,
)
from sojourn.terraform.plugin.schema import NUMBER, STRING, Attribute, Block, Schema
from sojourn.terraform.runnerschema import NO_SCRIPT, misnamed_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.task import Task
    from sojourn.terraform.plugin.values import Object

__all__ = ["MACHINE", "is_runner", "machine_of"]

_MISNAMED = misnamed_arguments()
_SIGNS = ("repo", "driver", "labels")  # of a runner; the others may come and go in place


def is_runner(values: Mapping[str, Any]) -> bool:
    """Whether it is a runner, in a configuration that names the wrong resource."""
    return any(values[name] not in EMPTY for name in _SIGNS)


def _unless_runner(machine: int, runner: int) -> dict[str, Any]:
    return {
        "default": machine,
        "default_in": lambda config, prior: runner if is_runner(config) else machine,
    }


MACHINE = Schema(
    Block(
        (
            Attribute("id", STRING, "ID of the machine, `tpi-...`.", computed=True),
            *arguments("Name of the machine, which becomes part of its `id`."),
            argument(
                "startup_script",
                STRING,
                "Script to run on the machine, and again after it was lost; must start with a "
                "shebang.",
                default=NO_SCRIPT,
                sensitive=True,
                readable=False,
            ),
            argument(
                "timeout",
                NUMBER,
                "Seconds after which the machine ends; `0`: no limit.",
                **_unless_runner(LIFETIME, 0),
            ),
            argument(
                "idle_timeout",
                NUMBER,
                "Seconds after which an idle machine ends; `0`: no limit.",
                **_unless_runner(IDLE_TIMEOUT, Runner.idle_timeout),
            ),
            argument("ami", STRING, "Old name of `image`."),
            argument("instance_name", STRING, "Old name of `name`."),
            KEY,
            *_MISNAMED,
            *OBSERVED,
            Attribute("ssh_name", STRING, "Always empty.", computed=True),
            Attribute(
                "state",
                STRING,
                "State of the machine. One that has ended is replaced by the next apply.",
                computed=True,
                replace=True,
                over=lambda state: state in ENDED,
            ),
        ),
        (),
        "Creates a machine that stays until it is destroyed, idle for too long, or out of time.",
    ),
    version=1,
    timeouts={"create": 1200.0, "read": 180.0, "update": 180.0, "delete": 1200.0},
)


def machine_of(values: Object) -> Task:
    """The task of a machine; raises InvalidInput, which names arguments as this resource does.

    What is not known yet is taken for something valid. Without `ssh_private`, the machine has no
    key but its own.
    """
    found = [*_strays(values), *problems_in(values)]
    with naming_arguments(*found):
        fields = fields_of(values)
        fields["timeout"] = whole(known(values["timeout"], LIFETIME))
        fields["idle_timeout"] = whole(known(values["idle_timeout"], IDLE_TIMEOUT))
        script = known(values["startup_script"], "") or NO_SCRIPT
        if any(problem.path == "startup_script" for problem in found):
            script = NO_SCRIPT  # what is wrong with it is said already
        return machine_task(script, fields)  # type: ignore[arg-type]


def _strays(values: Object) -> list[Problem]:
    given = [each.name for each in _MISNAMED if values[each.name] not in EMPTY]
    return [Problem(name, "belongs to a runner, which has a repo, too") for name in given]
