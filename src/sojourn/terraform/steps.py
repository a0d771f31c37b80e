"""Steps that resources of several kinds have in common, as all of them are tasks."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sojourn import api, clouds
from sojourn.core.errors import Cancelled, Conflict, InvalidInput, NotFound, SojournError
from sojourn.terraform import pending
from sojourn.terraform.plugin.diagnostics import Diagnostic, Failure
from sojourn.terraform.translate import context, diagnostics, failing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.terraform.plugin.resource import Call
    from sojourn.terraform.plugin.values import Object

__all__ = ["created", "form_problems", "handle_of", "looked_at", "removing", "reread"]

_LOOK_WITHIN = 60.0  # seconds to see what a creation that failed left
_H = TypeVar("_H", bound=api.Handle)
_H_co = TypeVar("_H_co", bound=api.Handle, covariant=True)


class _Make(Protocol[_H_co]):
    """Makes what a task describes."""

    def __call__(self, task: Task, *, id: TaskId, ctx: Context) -> _H_co: ...


def created(
    ctx: Context, task: Task, id: TaskId, state: Object, resumed: bool, make: _Make[_H]
) -> _H:
    """Create it; if that fails and leaves something behind, Terraform has to know of it."""
    handle = api.get(str(id), cloud=task.cloud, ctx=ctx)
    existed = handle.exists() and not resumed
    if existed:
        ctx.warn(f"{id} already exists and is adopted if it is the same task")
    try:
        return make(task, id=id, ctx=ctx)
    except (SojournError, OSError) as error:
        # One that was there before goes on as it is; one that is another's is not ours to keep.
        ours = not existed and not isinstance(error, Conflict)
        raise Failure(diagnostics(error), state if ours and _left(handle, ctx) else None) from error


def form_problems(
    cloud: Any,
    read: Callable[[], Task],
    settled: Callable[[], Task] | None = None,
    naming: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[Diagnostic]:
    """What a configuration itself shows to be wrong, without an SDK and without a call.

    `cloud` may not be known yet. `read` reads the task, `settled` that without what depends on
    things that are not known yet. `naming`: gives fields the names of arguments.
    """
    try:
        task = read()
    except InvalidInput as error:
        yield from diagnostics(error)
        task = None
    if not isinstance(cloud, str):
        return
    try:
        if task is None:
            clouds.plain(cloud)
            return
        with naming():
            api.check_form(settled() if settled else task)
    except SojournError as error:
        yield from diagnostics(error)


def reread(call: Call, state: Object, observed: Callable[[api.Handle], Object]) -> Object | None:
    """The state with what can be seen of it now; None if it is gone."""
    pending.forget(state["id"])
    with failing():
        try:
            return {**state, **observed(handle_of(state, context(call)))}
        except NotFound:
            call.log.write("warn", f"{state['id']} no longer exists")
            return None


@contextmanager
def removing(call: Call, state: Object, kept: str) -> Iterator[tuple[Context, bool]]:
    """For the removal of a resource: its context, and whether it is wanted, see `pending.removal`.

    `kept`: what can be done if it fails, with {id}.
    """
    own, ctx = state["id"], context(call)
    pending.forget(own)
    with failing(kept.format(id=own)), pending.removal(ctx, own) as wanted:
        try:
            yield ctx, wanted
        except NotFound:
            call.log.write("info", f"{own} is already deleted")
        except Cancelled as error:
            error.hint = "Some resources remain. Run `terraform destroy` again to delete them."
            raise


def looked_at(call: Call, handle: _H, state: Object, observed: Callable[[_H], Object]) -> Object:
    """The state with what can be seen of it now."""
    try:
        return {**state, **observed(handle)}
    except (SojournError, OSError) as error:  # it exists: nothing may be lost now
        summary = f"Started {handle.id}, but could not read its state"
        call.warn(Diagnostic(summary, str(error), warning=True))
        return state


def _left(handle: api.Handle, ctx: Context) -> bool:
    looking = ctx.shielded().within(_LOOK_WITHIN)
    try:
        return api.get(handle.id, cloud=handle.cloud, ctx=looking).exists()
    except (SojournError, OSError):
        return True  # it cannot be told: better a task too many in the state than one too few


def handle_of(state: Object, ctx: Context) -> api.Handle:
    """The task that a state tells of."""
    if not clouds.exists(state["cloud"]):
        raise Conflict(
            f"{state['id']} uses the cloud {state['cloud']!r}, which is not known here",
            hint="If it is a name in your settings, add it there: run `sojourn config`. If another "
            "provider created it, destroy it with that provider, or run `terraform state rm` to "
            "remove it from the state.",
        )
    return api.get(state["id"], cloud=state["cloud"], ctx=ctx)
