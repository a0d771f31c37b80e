"""The data source `iterative_task`: a task that somebody else leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api
from sojourn.core.ids import TaskId
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.schema import STRING, Attribute, Block, Schema
from sojourn.terraform.taskschema import OBSERVED, TASK
from sojourn.terraform.taskstate import described, observed
from sojourn.terraform.translate import context, failing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.terraform.plugin.resource import Call
    from sojourn.terraform.plugin.values import Object

__all__ = ["TaskData"]

_HIDDEN = ("environment",)  # cannot be read back
_READ = tuple(
    Attribute(argument.name, argument.type, argument.description, computed=True)
    for argument in TASK.block.attributes
    if argument.replace and argument.name not in ("name", *_HIDDEN)
)
_STORAGE = tuple(
    Attribute(argument.name, argument.type, argument.description, computed=True)
    for argument in TASK.block.blocks[0].block.attributes
    if argument.name in ("workdir", "output", "exclude")
)


class TaskData:
    """Read by its id, which may be shortened, or by its name."""

    schema = Schema(
        Block(
            (
                Attribute(
                    "id",
                    STRING,
                    "ID of the task, or a unique prefix of it.",
                    optional=True,
                    computed=True,
                ),
                Attribute("name", STRING, "Name of the task; use instead of `id`.", optional=True),
                *_READ,
                *_STORAGE,
                *OBSERVED,
            ),
            (),
            "An existing task, created with Terraform or not.",
        ),
        timeouts={"read": 180.0},
    )

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        if (config["id"] is None) == (config["name"] is None):
            yield Diagnostic("Exactly one of `id` and `name` is required", "Set one.", ("id",))
        for name in ("id", "name"):
            if config[name] == "":
                yield Diagnostic(
                    f"{name}: must not be empty", "Set it to identify the task.", (name,)
                )

    def read(self, call: Call, config: Object) -> Object:
        with failing():
            wanted = config["id"] or str(TaskId.deterministic(config["name"]))
            handle = api.get(wanted, ctx=context(call))
            task = handle.task()
            values = described(task)
            shown: Object = {argument.name: values[argument.name] for argument in _READ}
            for argument in _STORAGE:
                value = getattr(task.storage, argument.name)
                shown[argument.name] = list(value) if isinstance(value, tuple) else value or ""
            return {**config, **shown, **observed(handle), "id": handle.id}
