"""`iterative_machine`: a machine whose life Terraform leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn import api, clouds
from sojourn.core.errors import Cancelled, Conflict, InvalidInput, NotFound, SojournError
from sojourn.core.ids import TaskId
from sojourn.terraform import pending
from sojourn.terraform.machineschema import (
    MACHINE,
    OBSERVED,
    machine_of,
    name_of,
    notes_on,
)
from sojourn.terraform.plugin.diagnostics import Diagnostic
from sojourn.terraform.plugin.values import Object, Unknown, is_known
from sojourn.terraform.sshkeys import public_key
from sojourn.terraform.steps import created, handle_of, looked_at
from sojourn.terraform.translate import context, diagnostics, failing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sojourn.terraform.plugin.resource import Call

__all__ = ["MachineResource"]

_KEPT = "Run `terraform destroy` again, or `sojourn delete --force {id}` to delete it anyway."


class MachineResource:
    """Schema and verbs."""

    schema = MACHINE

    def validate(self, config: Object) -> Iterable[Diagnostic]:
        try:
            machine_of(config)
        except InvalidInput as error:
            yield from diagnostics(error)
        yield from (Diagnostic(note, warning=True) for note in notes_on(config))
        if isinstance(config["cloud"], str):
            try:
                clouds.load(config["cloud"])
            except SojournError as error:
                yield from diagnostics(error)

    def plan(self, call: Call, prior: Object | None, planned: Object) -> Iterable[Diagnostic]:
        if prior is not None:
            pending.forget(prior["id"])
        if planned == prior:
            return
        computed = dict.fromkeys(("id", "ssh_private", *_seen_names()))
        if is_known({**planned, **computed}):
            try:
                api.check(machine_of(planned), ctx=context(call))
            except SojournError as error:
                yield from diagnostics(error)

    def create(self, call: Call, planned: Object) -> Object:
        ctx = context(call)
        with failing():
            task = machine_of(planned)
            with pending.creation(ctx, task, name_of(planned)) as (own, resumed):
                call.log = call.log.having(id=str(own))
                unseen = dict.fromkeys(_seen_names(), "")
                key = "" if isinstance(planned["ssh_private"], Unknown) else planned["ssh_private"]
                state = {**planned, **unseen, "ssh_private": key, "id": str(own)}
                made = created(ctx, task, own, state, resumed, api.Machine.make)
                return looked_at(call, made, state, lambda handle: _seen(handle, state))

    def read(self, call: Call, state: Object) -> Object | None:
        pending.forget(state["id"])
        with failing():
            try:
                return {**state, **_seen(handle_of(state, context(call)), state)}
            except NotFound:
                call.log.write("warn", f"{state['id']} no longer exists")
                return None

    def update(self, call: Call, prior: Object, planned: Object) -> Object:
        return planned  # nothing of it can change

    def delete(self, call: Call, state: Object) -> None:
        own, ctx = state["id"], context(call)
        pending.forget(own)
        with failing(_KEPT.format(id=own)), pending.removal(ctx, own):
            try:
                handle_of(state, ctx).delete(fetch=False)
            except NotFound:
                call.log.write("info", f"{own} is already deleted")
            except Cancelled as error:
                error.hint = "Some resources remain. Run `terraform destroy` again to delete them."
                raise

    def find(self, call: Call, id: str) -> Object:
        with failing():
            machine = api.Machine.get(id, ctx=context(call))
            task = machine.task()
            blank = {"ssh_private": ""}
            kind, _, gpu = task.machine.partition("+")
            # Of the rest, what was given cannot be told from what was left to us.
            return {
                "id": machine.id,
                "cloud": task.cloud,
                "region": task.region,
                "instance_type": kind,
                "instance_gpu": gpu,
                "instance_permission_set": task.permission_set,
                "spot": task.spot >= 0,
                "spot_price": task.spot if task.spot > 0 else -1,
                "metadata": dict(task.tags) or None,
                "timeout": task.timeout,
                "idle_timeout": task.idle_timeout,
                **_seen(machine, blank),
            }

    def upgrade(self, version: int, state: Object) -> Object:
        """Version 0 was the old provider's, whose machines are none of ours."""
        if not TaskId.looks_like(str(state.get("id"))):
            raise Conflict(
                f"{state.get('id')} was created by another provider",
                hint="Destroy it with that provider, or delete it in the cloud's console and run "
                "`terraform state rm` to remove it from the state.",
            )
        return {**{a.name: a.default for a in MACHINE.block.attributes}, **state}


def _seen_names() -> list[str]:
    return [attribute.name for attribute in OBSERVED]


def _seen(handle: api.Handle, state: Object) -> Object:
    """What can be seen of it now. Gone: raises NotFound."""
    status = handle.status()
    found = [each for each in handle.machines() if each.address]
    keys = handle.keys()
    own = state["ssh_private"] or (keys.private if keys else "")
    return {
        "instance_ip": found[0].address if found else "",
        "instance_launch_time": found[0].started if found else "",
        "ssh_private": own,
        "ssh_public": public_key(own) if own else "",
        "ssh_name": "",
        "state": str(status.state),
    }
