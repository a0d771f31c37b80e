"""Everything that is in the subscription and was not there when it was new."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.storage import ACCOUNT


def found(parts: Parts, instances: Iterable[Instance], users: set[str]) -> list[str]:
    """A line for each; `users` are the principals of the test."""
    lines = []
    for each in parts.resources:
        lines.append(f"{each.type.rpartition('/')[2]} {each.id.removeprefix(parts.scope)}")
        if each.type == ACCOUNT:
            for container in each.inner.containers.values():
                lines += [f"blob {each.name}/{container.name}/{name}" for name in container.blobs]
    for role in parts.roles.definitions.values():
        if role.custom and not role.name.startswith("test: "):
            lines.append(f"role {role.name}")
    for one in parts.roles.assignments:
        if one.principal not in users:
            lines.append(f"role assignment {one.name} at {one.scope.removeprefix(parts.scope)}")
    lines += [f"instance {each.name}" for each in instances if not each.gone]
    return sorted(lines)
