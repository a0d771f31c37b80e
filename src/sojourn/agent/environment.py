"""The variables that a script has, and whatever else is run beside it on its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.runner import CREDENTIALS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.core.task import Task

__all__ = ["inherited", "script_environment"]

_INHERITED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


def inherited(around: Mapping[str, str]) -> dict[str, str]:
    """What a process on a machine has of the environment of the agent that starts it."""
    return {name: around[name] for name in _INHERITED if name in around}


def script_environment(
    own: Mapping[str, str],
    task: Task,
    *,
    rank: int,
    attempt: int,
    machine: str,
) -> dict[str, str]:
    """What a rank's script has beside what it inherits. `own`: what the user gave the task."""
    own = {name: value for name, value in own.items() if name != CREDENTIALS}
    return {
        "PYTHONUNBUFFERED": "1",  # else a Python script's log would come in blocks
        **own,
        "TPI_TASK": "true",
        "TPI_REGION": task.region,
        "TPI_MACHINE": task.machine,
        "SOJOURN_RANK": str(rank),
        "SOJOURN_PARALLELISM": str(task.parallelism),
        "SOJOURN_ATTEMPT": str(attempt),
        "SOJOURN_MACHINE": machine,
    }
