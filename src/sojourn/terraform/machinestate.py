"""What can be seen of a machine, whatever it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.core.errors import Conflict
from sojourn.core.ids import TaskId
from sojourn.terraform.plugin.values import Unknown
from sojourn.terraform.sshkeys import public_key

if TYPE_CHECKING:
    from sojourn.api import Handle
    from sojourn.core.task import Task
    from sojourn.terraform.plugin.schema import Schema
    from sojourn.terraform.plugin.values import Object

__all__ = ["imported", "observed", "seen_names", "unseen", "upgraded"]


def seen_names(schema: Schema) -> list[str]:
    """The attributes that are only seen."""
    own = schema.block.attributes
    return [each.name for each in own if not each.optional and each.name != "id"]


def unseen(schema: Schema, planned: Object, id: str) -> Object:
    """The state of one that nobody has seen yet."""
    key = "" if isinstance(planned["ssh_private"], Unknown) else planned["ssh_private"]
    return {**planned, **dict.fromkeys(seen_names(schema), ""), "ssh_private": key, "id": id}


def observed(handle: Handle, state: Object) -> Object:
    """What can be seen of it now. Gone: raises NotFound."""
    status = handle.status()
    found = [each for each in handle.machines() if each.address]
    keys = handle.keys()
    own = state["ssh_private"] or (keys.private if keys else "")
    now = {
        "instance_ip": found[0].address if found else "",
        "instance_launch_time": found[0].started if found else "",
        "ssh_private": own,
        "ssh_public": public_key(own) if own else "",
        "ssh_name": "",
        "state": str(status.state),
    }
    return {name: value for name, value in now.items() if name in state}


def imported(schema: Schema, handle: Handle, task: Task) -> Object:
    """The state of one that exists.

    Of the rest, what was given cannot be told from what was left to us.
    """
    kind, _, gpu = task.machine.partition("+")
    blank = dict.fromkeys(("ssh_private", *seen_names(schema)), "")
    return {
        "id": handle.id,
        "cloud": task.cloud,
        "region": task.region,
        "instance_type": kind,
        "instance_gpu": gpu,
        "instance_permission_set": task.permission_set,
        "spot": task.spot >= 0,
        "spot_price": task.spot if task.spot > 0 else -1,
        "metadata": dict(task.tags) or None,
        "timeout": task.timeout,
        **observed(handle, blank),
    }


def upgraded(schema: Schema, state: Object) -> Object:
    """Version 0 was the old provider's, whose machines are none of ours."""
    if not TaskId.looks_like(str(state.get("id"))):
        raise Conflict(
            f"{state.get('id')} was created by another provider",
            hint="Destroy it with that provider, or delete it in the cloud's console and run "
            "`terraform state rm` to remove it from the state.",
        )
    return {**{a.name: a.default for a in schema.block.attributes}, **state}
