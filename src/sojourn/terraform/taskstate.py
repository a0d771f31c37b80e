"""What Terraform is told of a task that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.terraform.taskschema import OBSERVED, TASK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.api import Handle
    from sojourn.core.events import CloudEvent, LogLine
    from sojourn.core.task import Task
    from sojourn.terraform.plugin.schema import Block
    from sojourn.terraform.plugin.values import Object

__all__ = ["completed", "described", "nothing_observed", "observed"]

# Terraform keeps all of it in its state, and sends it around with every command.
_LOGS_CHARACTERS = 8_000_000


def observed(handle: Handle) -> Object:
    """What can be seen of it now. Gone: raises NotFound."""
    status = handle.status()
    return {
        "ssh_public_key": "",
        "ssh_private_key": "",
        "addresses": [machine.address for machine in handle.machines() if machine.address],
        "status": status.counts,
        "state": str(status.state),
        "reason": status.reason,
        "events": [_event(event) for event in handle.events()],
        "logs": _logs(handle, len(status.ranks)),
    }


def nothing_observed() -> Object:
    """The same for a task that could not be looked at."""
    empty: dict[str, Any] = {"string": "", "list": [], "map": {}}
    return {attribute.name: empty[attribute.type.kind] for attribute in OBSERVED}


def described(task: Task) -> Object:
    """The arguments that would give this task, without those that cannot be read back."""
    storage = task.storage
    values: Object = {
        name: getattr(task, name)
        for name in (
            "cloud",
            "script",
            "region",
            "machine",
            "disk_size",
            "spot",
            "image",
            "permission_set",
            "parallelism",
            "timeout",
        )
    }
    if not task.environment:  # else its values are known to the machines alone
        values["environment"] = None
    values["tags"] = dict(task.tags) or None
    values["name"] = task.name or None
    block: Object = {
        "workdir": storage.workdir,
        "output": storage.output,
        "exclude": list(storage.exclude) or None,
        "container": storage.container,
    }
    if not storage.container_opts:
        block["container_opts"] = None
    values["storage"] = [block] if any(block.values()) else []
    return values


def completed(state: Object) -> Object:
    """An old state with the defaults of arguments that it does not have, or that are empty."""
    [storage] = TASK.block.blocks
    blocks = [_with_defaults(item, storage.block) for item in state.get(storage.name) or ()]
    return {**_with_defaults(state, TASK.block), storage.name: blocks}


def _with_defaults(values: Object, block: Block) -> Object:
    given = {name: value for name, value in values.items() if value not in (None, "", [], {})}
    return {**{a.name: a.default for a in block.attributes}, **given}


def _event(event: CloudEvent) -> str:
    return f"{event.time}: {event.code}\n{event.description}"


def _logs(handle: Handle, ranks: int) -> list[str]:
    """One text a rank; of long ones the end."""
    if not ranks:
        return []
    lines: list[list[str]] = [[] for _ in range(ranks)]
    for line in handle.logs():
        if line.rank < ranks:
            lines[line.rank].append(_line(line))
    most = _LOGS_CHARACTERS // ranks
    return [_end(texts, most, handle.id) for texts in lines]


def _line(line: LogLine) -> str:
    return f"{line.time} {line.text}"


def _end(lines: Iterable[str], most: int, id: str) -> str:
    text = "\n".join(lines)
    if len(text) <= most:
        return text
    _, _, end = text[-most:].partition("\n")
    return f"[only the end of it; all of it: sojourn logs {id}]\n{end}"
