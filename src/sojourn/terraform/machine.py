"""`iterative_machine`: a machine whose life Terraform leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api, clouds
from sojourn.core.errors import SojournError
from sojourn.terraform import pending
from sojourn.terraform.machinearguments import name_of, naming_arguments, notes_on
from sojourn.terraform.machineschema import MACHINE, is_runner, machine_of
from sojourn.terraform.machinestate import imported, observed, seen_names, unseen, upgraded
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.values import Object, is_known
from sojourn.terraform.runner import RunnerResource
from sojourn.terraform.steps import created, form_problems, handle_of, looked_at, removing, reread
from sojourn.terraform.translate import context, diagnostics, failing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from sojourn.terraform.plugin.resource import Call, Resource

__all__ = ["MachineOrRunner", "MachineResource"]

_KEPT = "Run `terraform destroy` again, or `sojourn delete --force {id}` to delete it anyway."


class MachineResource:
    """Schema and verbs."""

    schema = MACHINE

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        cloud = clouds.FOR_MACHINES if config["cloud"] is None else config["cloud"]
        yield from form_problems(cloud, lambda: machine_of(config), naming=naming_arguments)
        yield from (Diagnostic(note, warning=True) for note in notes_on(config))

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        if prior is not None:
            pending.forget(prior["id"])
        if planned == prior:
            return
        computed = dict.fromkeys(("id", "ssh_private", *seen_names(MACHINE)))
        if is_known({**planned, **computed}):
            try:
                with naming_arguments():
                    api.check(machine_of(planned), ctx=context(call))
            except SojournError as error:
                yield from diagnostics(error)

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        return ()  # it stays until it is destroyed: nothing is cut short

    def create(self, call: Call, planned: Object) -> Object:
        ctx = context(call)
        with failing():
            task = machine_of(planned)
            with pending.creation(ctx, task, name_of(planned)) as (own, resumed):
                call.log = call.log.having(id=str(own))
                state = unseen(MACHINE, planned, str(own))
                made = created(ctx, task, own, state, resumed, api.Machine.make)
                return looked_at(call, made, state, lambda handle: observed(handle, state))

    def read(self, call: Call, state: Object) -> Object | None:
        return reread(call, state, lambda handle: observed(handle, state))

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return planned  # nothing of it can change

    def delete(self, call: Call, state: Object) -> None:
        with removing(call, state, _KEPT) as (ctx, _):
            handle_of(state, ctx).delete(fetch=False)

    def find(self, call: Call, id: str) -> Object:
        with failing():
            machine = api.Machine.get(id, ctx=context(call))
            task = machine.task()
            return {**imported(MACHINE, machine, task), "idle_timeout": task.idle_timeout}

    def upgrade(self, version: int, state: Object) -> Object:
        return upgraded(MACHINE, state)


class MachineOrRunner:
    """The same, for pages of the old provider that show runners under this name."""

    schema = MACHINE

    def __init__(self) -> None:
        self._machine = MachineResource()
        self._runner = RunnerResource(MACHINE)

    def _of(self, values: Mapping[str, Any]) -> Resource:
        return self._runner if is_runner(values) else self._machine

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        if is_runner(config):
            yield Diagnostic(
                "A runner is another resource: iterative_cml_runner",
                "Its arguments are accepted here, too. Rename the resource to have all of them.",
                warning=True,
            )
        yield from self._of(config).validate(config)

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        return self._of(planned).plan(call, prior, planned)

    def plan_removal(self, call: Call, prior: Object) -> Iterable[Diagnostic]:
        return self._of(prior).plan_removal(call, prior)

    def create(self, call: Call, planned: Object) -> Object:
        return self._of(planned).create(call, planned)

    def read(self, call: Call, state: Object) -> Object | None:
        return self._of(state).read(call, state)

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return self._of(planned).update(call, prior, planned)

    def delete(self, call: Call, state: Object) -> None:
        self._of(state).delete(call, state)

    def find(self, call: Call, id: str) -> Object:
        return self._machine.find(call, id)

    def upgrade(self, version: int, state: Object) -> Object:
        return self._machine.upgrade(version, state)
