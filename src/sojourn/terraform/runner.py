"""`iterative_cml_runner`: a CI runner whose life Terraform leads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from sojourn import clouds
from sojourn.core.errors import Cancelled, NotFound, SojournError
from sojourn.core.runner import Runner
from sojourn.core.status import State
from sojourn.terraform import pending
from sojourn.terraform.machinearguments import ENDED, name_of, naming_arguments, notes_on
from sojourn.terraform.machinestate import imported, observed, unseen, upgraded
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.values import Object, Unknown, is_known
from sojourn.terraform.runnerschema import (
    RUNNER,
    described,
    launch_fields,
    notes_on_runner,
    settings_of,
    token_of,
)
from sojourn.terraform.steps import created, form_problems, handle_of, looked_at, removing
from sojourn.terraform.translate import context, diagnostics, failing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task
    from sojourn.runners import Launched
    from sojourn.runners.target import Target
    from sojourn.terraform.plugin.resource import Call
    from sojourn.terraform.plugin.schema import Schema

# What launches runners is loaded when there are any: it takes long.

__all__ = ["RunnerResource"]

_KEPT = "Run `terraform destroy` again, or `sojourn runner delete --force {id}` to delete it."


class RunnerResource:
    """Schema and verbs. `schema`: has all arguments that the own one had in the old provider."""

    def __init__(self, schema: Schema = RUNNER) -> None:
        self.schema = schema

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        cloud = clouds.FOR_MACHINES if config["cloud"] is None else config["cloud"]
        yield from form_problems(cloud, lambda: described(config), naming=naming_arguments)
        notes = [*notes_on(config), *notes_on_runner(config)]
        yield from (Diagnostic(note, warning=True) for note in notes)

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        if prior is not None:
            pending.forget(prior["id"])
            return  # what may change has no effect on it
        if not is_known(dict(call.config)):
            return
        from sojourn import runners

        try:
            target = _find_target(planned, token_of(planned, call.config))
            settings = settings_of(planned, target)
            with naming_arguments():
                runners.check(settings, launch_fields(planned), ctx=context(call))
        except (SojournError, OSError) as error:
            yield from diagnostics(error)

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        return ()  # it has no end of its own to wait for

    def create(self, call: Call, planned: Object) -> Object:
        from sojourn import runners

        ctx = context(call)
        with failing():
            target = _find_target(planned, token_of(planned, call.config))
            settings = settings_of(planned, target)
            task = described(planned)
            with pending.creation(ctx, task, name_of(planned)) as (own, resumed):
                call.log = call.log.having(id=str(own))
                state = unseen(self.schema, planned, str(own))

                def make(task: Task, *, id: TaskId, ctx: Context) -> Launched:
                    with naming_arguments():
                        made = runners.make(settings, launch_fields(planned), id=id, ctx=ctx)
                    return cast("Launched", made)  # none is used again

                made = created(ctx, task, own, state, resumed, make)
                return looked_at(call, made, state, lambda handle: observed(handle, state))

    def read(self, call: Call, state: Object) -> Object | None:
        """One that has ended is gone, and nobody needs what is left of it."""
        pending.forget(state["id"])
        ctx = context(call)
        with failing():
            handle = handle_of(state, ctx)
            try:
                now = observed(handle, state)
                if now["state"] not in ENDED:
                    return {**state, **now}
                _tell_end(ctx, state["id"], State(now["state"]), handle.status().reason)
            except NotFound:
                call.log.write("warn", f"{state['id']} no longer exists")
            try:
                _remove(ctx, state)
            except Cancelled:
                raise
            except (SojournError, OSError) as error:
                ctx.warn(
                    f"Could not remove what is left of {state['id']}: {error}. "
                    f"Run `sojourn runner delete --force {state['id']}` to remove it."
                )
        return None

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return planned  # another token is for what comes later

    def delete(self, call: Call, state: Object) -> None:
        with removing(call, state, _KEPT) as (ctx, _):
            _remove(ctx, state)

    def find(self, call: Call, id: str) -> Object:
        from sojourn import runners

        with failing():
            found = runners.get(id, ctx=context(call))
            what = found.runner()
            return {
                **imported(self.schema, found, found.task()),
                "driver": what.driver,
                "repo": what.repo,
                "labels": ",".join(what.labels),
                "idle_timeout": what.idle_timeout,
            }

    def upgrade(self, version: int, state: Object) -> Object:
        return upgraded(self.schema, state)


def _find_target(planned: Object, token: str) -> Target:
    """Whose runner it will be, which is filled in if it was left to us."""
    from sojourn.runners.target import find_target

    given = {
        name: "" if isinstance(planned[name], Unknown) else planned[name] or ""
        for name in ("driver", "repo")
    }
    target = find_target(given["driver"], given["repo"], token, os.environ)
    for name in given:
        if isinstance(planned[name], Unknown):
            planned[name] = getattr(target, name)
    return target


def _tell_end(ctx: Context, id: str, state: State, reason: str) -> None:
    why = f": {reason}" if reason else ""
    if state is State.SUCCEEDED:
        ctx.note(f"{id} has ended{why}")
    else:
        ctx.warn(f"Runner {id} {state}{why}. Run `sojourn logs {id}` for its log.")


def _remove(ctx: Context, state: Object) -> None:
    from sojourn import runners

    launched = runners.Launched.of(handle_of(state, ctx))
    launched.remove(
        token=state["token"] or "",
        force=True,
        ca_file=state.get("ca_file") or "",
        runner=_runner_of(state),
    )


def _runner_of(state: Object) -> Runner | None:
    """As Terraform knows it; None: as its task has it."""
    from sojourn.runners.target import find_place

    if not state["repo"]:
        return None
    driver, repo = find_place(state["driver"] or "", state["repo"], os.environ)
    return Runner(driver, repo, name_of(state) or state["id"], state["id"])
