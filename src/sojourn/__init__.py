"""Sojourn: a script goes to a bigger machine with its data and comes home with its results.

import sojourn

result = sojourn.run("train.sh", workdir=".", output="results")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sojourn.api import (
        Handle,
        Machine,
        Result,
        check,
        create,
        gc,
        get,
        images,
        latest,
        list_tasks,
        load,
        load_all,
        mpi,
        plan,
        run,
    )
    from sojourn.core.errors import (
        AuthError,
        Cancelled,
        CapacityError,
        Conflict,
        IntegrityError,
        InvalidInput,
        MissingDependency,
        NotFound,
        Problem,
        QuotaError,
        SojournError,
        TaskFailed,
        Transient,
    )
    from sojourn.core.events import (
        CloudEvent,
        Downloaded,
        Event,
        LogLine,
        Note,
        Progress,
        StatusChanged,
        StepEnded,
        StepStarted,
        Warned,
    )
    from sojourn.core.gang import Mpi
    from sojourn.core.interfaces import (
        Connection,
        KeyPair,
        MadeImage,
        Member,
        RemoteProcess,
        Terminal,
    )
    from sojourn.core.operators import Operator
    from sojourn.core.report import Outcome, Report
    from sojourn.core.status import RankStatus, State, Status
    from sojourn.core.task import Storage, Task
    from sojourn.engine.creation import Plan
    from sojourn.engine.upload import Part, Upload

__all__ = [
    "AuthError",
    "Cancelled",
    "CapacityError",
    "CloudEvent",
    "Conflict",
    "Connection",
    "Downloaded",
    "Event",
    "Handle",
    "IntegrityError",
    "InvalidInput",
    "KeyPair",
    "LogLine",
    "Machine",
    "MadeImage",
    "Member",
    "MissingDependency",
    "Mpi",
    "NotFound",
    "Note",
    "Operator",
    "Outcome",
    "Part",
    "Plan",
    "Problem",
    "Progress",
    "QuotaError",
    "RankStatus",
    "RemoteProcess",
    "Report",
    "Result",
    "SojournError",
    "State",
    "Status",
    "StatusChanged",
    "StepEnded",
    "StepStarted",
    "Storage",
    "Task",
    "TaskFailed",
    "Terminal",
    "Transient",
    "Upload",
    "Warned",
    "check",
    "create",
    "gc",
    "get",
    "images",
    "latest",
    "list_tasks",
    "load",
    "load_all",
    "mpi",
    "plan",
    "run",
]

_HOMES = (  # of classes; verbs are in the api
    *("core.errors", "core.events", "core.gang", "core.interfaces", "core.operators"),
    *("core.report", "core.status", "core.task", "api", "engine.creation", "engine.upload"),
)


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing sojourn costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    homes = _HOMES if name[0].isupper() else ("api",)
    modules = (import_module(f"sojourn.{home}") for home in homes)
    return next(getattr(module, name) for module in modules if name in module.__all__)


def __dir__() -> list[str]:
    """What shells and editors offer: also names that are not loaded yet."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
