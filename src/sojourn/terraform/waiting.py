"""Waiting for the end of a task within an apply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sojourn.api.resultfile import write_result
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, NotFound, SojournError
from sojourn.core.status import State
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure
from sojourn.terraform.steps import handle_of, looked_at
from sojourn.terraform.taskstate import observed
from sojourn.terraform.translate import diagnostics

if TYPE_CHECKING:
    from sojourn.api import Handle, Result
    from sojourn.terraform.plugin.resource import Call
    from sojourn.terraform.plugin.values import Object

__all__ = ["waited"]

_REPLACED = "The next `terraform apply` replaces it, unless you run `terraform untaint` before."


def waited(call: Call, ctx: Context, verb: Literal["create", "update"], state: Object) -> Object:
    """The state of a task once it has ended; raises Failure if its script did not succeed.

    Only a timeout that the user set limits the wait: the default ones are for requests. After
    Ctrl-C, the task keeps running, and its state is that of one that was not waited for.
    """
    own = state["id"]
    limited = bool((call.config.get("timeouts") or {}).get(verb))
    waiting = ctx if limited else Context(ctx.emit, cancelled=ctx.cancelled)
    try:
        result = handle_of(state, waiting).wait()
    except Cancelled:
        hint = f"Run `sojourn logs --follow {own}` to follow it, or `terraform destroy` to end it."
        call.warn(Diagnostic(f"Stopped waiting: {own} keeps running", hint, warning=True))
        return state
    except NotFound as error:
        raise Failure(diagnostics(error)) from error
    except (SojournError, OSError) as error:
        raise Failure([_not_seen(own, error, verb if limited else "")], state) from error
    handle = handle_of(state, ctx.shielded().within(call.seconds))
    state = looked_at(call, handle, state, observed)
    if state["log_file"] and result.status is not State.STOPPED:
        _write_log(call, handle, Path(state["log_file"]))
    if result.status is State.SUCCEEDED:
        return state
    if result.status is State.STOPPED:
        hint = f"Run `sojourn start {own}` to resume it."
        call.warn(Diagnostic(f"{own} was stopped before its end", hint, warning=True))
        return state
    raise Failure([_failed(result, verb)], state)


def _write_log(call: Call, handle: Handle, path: Path) -> None:
    """Only warns if that fails: the task has ended, and must not run again for a file."""
    try:
        write_result(handle, path)
    except (SojournError, OSError) as error:
        hint = f"Run `sojourn logs {handle.id} --rank 0` to see the log."
        call.warn(Diagnostic(f"log_file: {error}", hint, ("log_file",), warning=True))


def _failed(result: Result, verb: str) -> Diagnostic:
    code = "" if result.exit_code is None else f", exit code {result.exit_code}"
    why = f": {result.reason}" if result.reason else ""
    hint = f"Run `sojourn logs {result.id}` for its log."
    return Diagnostic(f"{result.id} {result.status}{code}{why}", _with_next(hint, verb))


def _not_seen(id: str, error: SojournError | OSError, verb: str) -> Diagnostic:
    limit = f" (timeouts.{verb})" if verb else ""
    hint = _with_next("The task keeps running.", verb)
    return Diagnostic(f"Could not wait for the end of {id}: {error}{limit}", hint)


def _with_next(hint: str, verb: str) -> str:
    return hint if verb == "update" else f"{hint} {_REPLACED}"
