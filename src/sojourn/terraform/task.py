"""`iterative_task`: a task whose life Terraform leads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import api
from sojourn.core.errors import Conflict, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.core.status import State
from sojourn.terraform import pending
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.values import Object, Unknown, is_known
from sojourn.terraform.steps import created, form_problems, handle_of, looked_at, removing, reread
from sojourn.terraform.taskschema import TASK, settled, storage_of, task_of
from sojourn.terraform.taskstate import completed, described, nothing_observed, observed
from sojourn.terraform.translate import context, diagnostics, failing
from sojourn.terraform.waiting import waited

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sojourn.core.context import Context
    from sojourn.core.task import Storage
    from sojourn.terraform.plugin.resource import Call

__all__ = ["TaskResource"]

_OVER = tuple(str(state) for state in State if state.ended or state is State.STOPPED)

_KEPT = (
    "Results that were not downloaded are still in the cloud. Fix the problem and run "
    "`terraform destroy` again, or run `sojourn delete --force {id}` to delete it anyway."
)


class TaskResource:
    """Schema and verbs."""

    schema = TASK

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        return form_problems(config["cloud"], lambda: task_of(config), lambda: settled(config))

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        if prior is not None:
            pending.forget(prior["id"])  # also without a refresh
        if planned == prior:
            return
        try:
            task = task_of(planned)
            if task.name and isinstance(planned["id"], Unknown):
                planned["id"] = str(TaskId.deterministic(task.name))
            if prior is None:
                yield from _missing_workdir(task.storage)
            if is_known({**planned, **_not_asked(planned)}) and not _workdir_missing(task.storage):
                api.check(task, ctx=context(call))
        except SojournError as error:
            yield from diagnostics(error)

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        if not prior["stay"] and _is_running(call, prior):
            yield Diagnostic(
                f"{prior['id']} is still running: destroying it ends its script",
                f"To wait for its end first, run `sojourn logs --follow {prior['id']}`. "
                "With `wait = true` in the resource, `terraform apply` waits for it.",
                warning=True,
            )

    def create(self, call: Call, planned: Object) -> Object:
        ctx = context(call)
        with failing():
            task = task_of(planned)
            with pending.creation(ctx, task) as (own, resumed):
                call.log = call.log.having(id=str(own))
                state = {**planned, **nothing_observed(), "id": str(own)}
                handle = created(ctx, task, own, state, resumed, api.create)
                state = looked_at(call, handle, state, observed)
                return waited(call, ctx, "create", state) if planned["wait"] else state

    def read(self, call: Call, state: Object) -> Object | None:
        return reread(call, state, observed)

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        with failing():
            storage = storage_of(planned)
            if storage != storage_of(prior):
                handle_of(prior, context(call)).amend(
                    output=storage.output, exclude=storage.exclude
                )
            if planned["wait"] and not prior["wait"]:
                return waited(call, context(call), "update", planned)
        return planned

    def delete(self, call: Call, state: Object) -> None:
        with removing(call, state, _KEPT) as (ctx, wanted):
            if not wanted:
                ctx.warn(f"Keeping {state['id']}: another resource with this name uses it now")
                return
            handle = handle_of(state, ctx)
            storage = storage_of(state)
            if storage.output:
                _refuse_to_lose(handle, storage)
                handle.delete(into=_home(storage), output=storage.output)
            else:
                _warn_of_files(ctx, handle)
                handle.delete(fetch=False)

    def find(self, call: Call, id: str) -> Object:
        with failing():
            handle = api.get(id, ctx=context(call))
            status = handle.status()
            if not status.ranks:
                raise Conflict(f"Could not import {handle.id}: {status.reason}")
            return {**described(handle.task()), **observed(handle), "id": handle.id}

    def upgrade(self, version: int, state: Object) -> Object:
        """Version 0 was the old provider's: the same, without what came later."""
        return completed(state)


def _is_running(call: Call, state: Object) -> bool:
    """Whether the script of a task may not have ended; asks, as the state may be old."""
    if state["state"] in _OVER:
        return False
    try:
        return str(handle_of(state, context(call)).status().state) not in _OVER
    except NotFound:
        return False
    except (SojournError, OSError):
        return True


def _refuse_to_lose(handle: api.Handle, storage: Storage) -> None:
    """A script that succeeded without any output has most likely written it elsewhere."""
    if not storage.output or handle.status().state is not State.SUCCEEDED:
        return
    if handle.misses_some(storage.output):
        raise Conflict(
            f"{handle.id} succeeded but left nothing new in its output {storage.output!r}; "
            "its results could be in another folder",
            hint=f"Run `sojourn pull {handle.id} --output . --into FOLDER` to download everything. "
            "Then correct or remove `output` and run `terraform apply` before "
            f"`terraform destroy`, or run `sojourn delete {handle.id}` to delete the task.",
        )


def _warn_of_files(ctx: Context, handle: api.Handle) -> None:
    """A blank output means that nothing is downloaded; it may also have been forgotten."""
    changed = handle.changed()
    if changed:
        ctx.warn(
            f"Discarding new or changed files of {handle.id} ({len(changed)}), such as "
            f"{changed[0].path}: storage.output is not set"
        )


def _home(storage: Storage) -> Path:
    """Where the results belong: the workdir as seen from here, not from where it was created."""
    return Path(storage.workdir or ".").absolute()


def _not_asked(planned: Object) -> Object:
    """Attributes that are unknown until it exists, and do not matter before."""
    return {name: None for name in ("id", *nothing_observed()) if name in planned}


def _workdir_missing(storage: Storage) -> bool:
    return bool(storage.workdir) and not os.path.lexists(storage.workdir)


def _missing_workdir(storage: Storage) -> Iterator[Diagnostic]:
    """Only a warning: another resource may make the folder before this one is created."""
    if _workdir_missing(storage):
        folder = Path(storage.workdir).absolute()
        yield Diagnostic(
            f"storage.workdir: {folder} does not exist yet",
            "It must exist when the task is created.",
            ("storage", 0, "workdir"),
            warning=True,
        )
