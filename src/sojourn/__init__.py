"""Sojourn: a script goes to a bigger machine with its data and comes home with its results.

import sojourn

task = sojourn.Task(
    script=open("train.sh").read(),
    storage=sojourn.Storage(workdir=".", output="results"),
)
result = sojourn.run(task)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sojourn.api import Handle, Result, create, gc, get, latest, list_tasks, run
    from sojourn.core.errors import SojournError
    from sojourn.core.status import State
    from sojourn.core.task import Storage, Task

__all__ = [
    "Handle",
    "Result",
    "SojournError",
    "State",
    "Storage",
    "Task",
    "create",
    "gc",
    "get",
    "latest",
    "list_tasks",
    "run",
]

_HOMES = {
    "SojournError": "sojourn.core.errors",
    "State": "sojourn.core.status",
    "Storage": "sojourn.core.task",
    "Task": "sojourn.core.task",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing sojourn costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "sojourn.api")), name)


def __dir__() -> list[str]:
    """What shells and editors offer: also names that are not loaded yet."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
