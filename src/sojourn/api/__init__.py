"""Every verb, once: what the command line, Terraform and Python programs call.

Nothing here prints or exits. Events go to `on_event`; errors are those of `sojourn.core.errors`.
"""

from sojourn.api import images, mpi, rows
from sojourn.api.creating import check, check_form, create, load, load_all, plan
from sojourn.api.finding import (
    garbage,
    gc,
    get,
    latest,
    latest_deleted,
    list_tasks,
    overview,
    saved_log,
)
from sojourn.api.handle import Handle, Result
from sojourn.api.machine import Machine
from sojourn.api.running import run
from sojourn.api.telling import OnEvent

__all__ = [
    "Handle",
    "Machine",
    "OnEvent",
    "Result",
    "check",
    "check_form",
    "create",
    "garbage",
    "gc",
    "get",
    "images",
    "latest",
    "latest_deleted",
    "list_tasks",
    "load",
    "load_all",
    "mpi",
    "overview",
    "plan",
    "rows",
    "run",
    "saved_log",
]
