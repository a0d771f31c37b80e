"""What Terraform is told of a task that exists."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from sojourn.core.argument import PAIRS, TEXTS, arguments_of
from sojourn.core.escape import escaped, escaped_lines
from sojourn.terraform.taskschema import OBSERVED, TASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.api import Handle
    from sojourn.core.events import CloudEvent
    from sojourn.core.task import Storage, Task
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
    values = _arguments(task)
    block = _arguments(task.storage)
    values["storage"] = [block] if any(block.values()) else []
    return values


def _arguments(holder: Task | Storage) -> Object:
    """As a configuration has them: without what is not shown, and what says nothing.

    Of a secret it is known only that there is none.
    """
    values: Object = {}
    for name, each in arguments_of(type(holder)).items():
        value = getattr(holder, name)
        if not each.description or (each.secret and value):
            continue
        if each.kind in (TEXTS, PAIRS):
            value = {TEXTS: list, PAIRS: dict}[each.kind](value) or None
        values[name] = _AS_WRITTEN[name](value) if name in _AS_WRITTEN else value
    return values


_AS_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "default_ignore": lambda on: None if on else False,
    "mpi": lambda mpi: mpi and {"slots": str(mpi.slots), "implementation": mpi.implementation},
    "name": lambda name: name or None,
    "output": lambda output: output or "",
}


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
