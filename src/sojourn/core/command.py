"""What a task runs, in a few words for lists."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.core.task import Task

__all__ = ["command_of"]

_EXEC = "exec "  # how the script of a plain command begins


def command_of(task: Task) -> str:
    """The first command of its script, with its arguments; empty for a runner or a machine."""
    if task.runner or task.stay:
        return ""
    lines = [line.strip() for line in task.script.splitlines()[1:]]
    commands = [line for line in lines if line and not line.startswith(("#", "set "))]
    if not commands:
        return ""
    [first, *others] = commands
    if not others:
        first = first.removeprefix(_EXEC)
    return " ".join(filter(None, [first, "..." if others else "", shlex.join(task.arguments)]))
