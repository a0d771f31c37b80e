"""What Terraform is told of a task that exists."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from sojourn.core.escape import escaped, escaped_lines
from sojourn.terraform.taskschema import OBSERVED, TASK

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.core.events import CloudEvent
    from sojourn.core.task import Task
    from sojourn.terraform.plugin.schema import Block
    from sojourn.terraform.plugin.values import Object

__all__ = ["completed", "described", "nothing_observed", "observed"]

# Terraform keeps all of it in its state, and sends it around with every command.
_LOGS_CHARACTERS = 8_000_000


def observed(handle: Handle) -> Object:
    """What can be seen of it now. Gone: raises NotFound.

    All that a machine has a part in is escaped: Terraform prints what changed in a state without
    being asked, and texts of several lines as they are.
    """
    status = handle.status()
    keys = handle.keys()
    return {
        "ssh_public_key": keys.public if keys else "",
        "ssh_private_key": keys.private if keys else "",
        "addresses": [machine.address for machine in handle.machines() if machine.address],
        "status": status.counts,
        "state": str(status.state),
        "reason": escaped_lines(status.reason),
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
            "gang",
            "gang_timeout",
            "timeout",
            "stay",
            "idle_timeout",
        )
    }
    if not task.environment:  # else its values are known to the machines alone
        values["environment"] = None
    values["arguments"] = list(task.arguments) or None
    for name in ("tags", "mounts", "options", "files"):
        values[name] = dict(getattr(task, name)) or None
    mpi = task.mpi
    values["mpi"] = mpi and {"slots": str(mpi.slots), "implementation": mpi.implementation}
    values["name"] = task.name or None
    block: Object = {
        "workdir": storage.workdir,
        "output": storage.output or "",
        "exclude": list(storage.exclude) or None,
        "default_ignore": None if storage.default_ignore else False,
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
    return escaped_lines(f"{event.time}: {event.code}\n{event.description}")


def _logs(handle: Handle, ranks: int) -> list[str]:
    """One text a rank; of long ones the end."""
    if not ranks:
        return []
    ends = [_End(_LOGS_CHARACTERS // ranks) for _ in range(ranks)]
    for line in handle.logs():
        if line.rank < ranks:
            ends[line.rank].add(f"{line.time} {_without_controls(line.text)}")
    return [end.text(handle.id) for end in ends]


def _without_controls(line: str) -> str:
    return "\t".join(map(escaped, line.split("\t")))


class _End:
    """The last lines of a log, as many as there is room for."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lines: deque[str] = deque()
        self._whole = True

    def add(self, line: str) -> None:
        self._lines.append(line)
        self._room -= len(line) + 1
        while self._room < 0:
            self._room += len(self._lines.popleft()) + 1
            self._whole = False

    def text(self, id: str) -> str:
        first = [] if self._whole else [f"[truncated; run `sojourn logs {id}` for the full log]"]
        return "\n".join([*first, *self._lines])
