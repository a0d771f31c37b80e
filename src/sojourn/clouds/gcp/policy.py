"""What a machine may do: read its own store, write its part of it, and act on its own group.

What a laptop acts on, such as the task's description, a machine can only read.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp.errors import reason_of
from sojourn.clouds.vm.paths import LISTED, OWNERS, READ
from sojourn.clouds.vm.waiting import PATIENCE, pause
from sojourn.core.errors import Conflict, InvalidInput
from sojourn.storage.layout import MACHINES_WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.clouds.gcp.locations import Location
    from sojourn.core.context import Context

__all__ = ["change_policy", "on_bucket", "on_group", "with_bindings", "without"]

_VERSION = 3  # the one with conditions
_TITLE = "Sojourn task"
Policy = dict[str, Any]


def on_group(project: str, zone: str, name: str, member: str) -> list[Policy]:
    """The binding in the project's policy: it holds for the task's group alone."""
    group = f"projects/{project}/zones/{zone}/instanceGroupManagers/{name}"
    return [_binding("roles/compute.instanceAdmin.v1", member, f"resource.name == '{group}'")]


def on_bucket(location: Location, member: str) -> list[Policy]:
    """The bindings in the policy of the bucket. Google takes 12 operators in a condition, so the
    names of what a machine reads in a bucket of the user's are in several."""
    inside = f"{location.folder}/" if location.folder else ""
    objects = f"projects/_/buckets/{location.bucket}/objects/{inside}"
    readable = [f"!resource.name.startsWith('{objects}{OWNERS}')"]
    if location.contained:  # other tasks may have folders beside it, or below
        prefix = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
        listed = " || ".join(f"{prefix}.startsWith('{inside}{name}')" for name in LISTED)
        readable = [
            " || ".join(_named(objects, name) for name in READ),
            f"resource.type == 'storage.googleapis.com/Bucket' && ({listed})",
        ]
    writable = " || ".join(_named(objects, f"{name}/") for name in MACHINES_WRITE)
    return [
        *(_binding("roles/storage.objectViewer", member, each) for each in readable),
        _binding("roles/storage.objectUser", member, writable),
    ]


def _named(objects: str, name: str) -> str:
    """That it is this file, or in this folder."""
    if name.endswith("/"):
        return f"resource.name.startsWith('{objects}{name}')"
    return f"resource.name == '{objects}{name}'"


def _binding(role: str, member: str, expression: str) -> Policy:
    condition = {"title": _TITLE, "expression": expression}
    return {"role": role, "members": [member], "condition": condition}


def with_bindings(policy: Policy, wanted: list[Policy]) -> Policy | None:
    """The policy with them; None: it has them."""
    bindings = policy.get("bindings", [])
    missing = [binding for binding in wanted if not any(_same(binding, b) for b in bindings)]
    if not missing:
        return None
    return {**policy, "version": _VERSION, "bindings": [*bindings, *missing]}


def _same(wanted: Policy, there: Policy) -> bool:
    keys = ("role", "members", "condition")
    return all(wanted.get(key) == there.get(key) for key in keys)


def without(policy: Policy, email: str) -> Policy | None:
    """The policy without an account, be it deleted or not; None: it has none of it."""
    bindings = []
    for binding in policy.get("bindings", []):
        members = [member for member in binding["members"] if not _names(member, email)]
        bindings.append({**binding, "members": members})
    if bindings == policy.get("bindings", []):
        return None
    kept = [binding for binding in bindings if binding["members"]]
    return {**policy, "version": _VERSION, "bindings": kept}


def _names(member: str, email: str) -> bool:
    """Of a deleted account, Google writes `deleted:serviceAccount:EMAIL?uid=NUMBER`."""
    return member.partition("?")[0].endswith(f"serviceAccount:{email}")


def change_policy(
    ctx: Context,
    read: Callable[[], Policy],
    write: Callable[[Policy], object],
    change: Callable[[Policy], Policy | None],
) -> None:
    """Change a policy that others change, too; a new account may not be known there yet."""
    patience = ctx.within(PATIENCE)
    while True:
        changed = change(read())
        if changed is None:
            return
        try:
            write(changed)
            return
        except Conflict as error:
            pause(patience, random.uniform(0.05, 1.0), error)  # noqa: S311 -- not all at once
        except InvalidInput as error:
            if "does not exist" not in error.message or not reason_of(error):
                raise
            pause(patience, 1, error)
