"""Who the agents of an MPI program are for the API server, and the little that they may do.

They may see which pods there are, and delete those of their own program, by name.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.clouds.k8s.resources import Made, gone
from sojourn.core.errors import Conflict

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["AgentAccount"]

_KINDS = ("ServiceAccount", "Role", "RoleBinding")  # a binding needs both others
_RBAC = "rbac.authorization.k8s.io"


class AgentAccount(Made):
    """A service account with a role; with one of the user's, only the role."""

    kind = "RoleBinding"  # the last: if it is there, all are

    @property
    def title(self) -> str:
        return f"account {self._objects.name}"

    def read(self, ctx: Context) -> bool:
        return any(self._api.find(kind, self._objects.name) for kind in _KINDS)

    def create(self, ctx: Context) -> None:
        bodies = {
            "ServiceAccount": {},
            "Role": {"rules": self._rules()},
            "RoleBinding": self._ties(),
        }
        for kind in _KINDS:
            if kind == "ServiceAccount" and self._objects.task.permission_set:
                continue
            body: dict[str, Any] = {"metadata": self._metadata(), **bodies[kind]}
            with suppress(Conflict):
                self._api.create(kind, body)

    def delete(self, ctx: Context) -> None:
        for kind in reversed(_KINDS):
            self._api.delete(kind, self._objects.name)
        gone(ctx, lambda: not self.read(ctx), self.title)

    def _rules(self) -> list[dict[str, Any]]:
        name, workers = self._objects.name, self._objects.task.parallelism - 1
        rules: list[dict[str, Any]] = [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
            {
                "apiGroups": ["batch"],
                "resources": ["jobs"],
                "resourceNames": [f"{name}-launcher"],
                "verbs": ["delete"],
            },
        ]
        if workers:
            theirs = [f"{name}-worker-{number}" for number in range(workers)]
            rules.append(
                {
                    "apiGroups": [""],
                    "resources": ["pods"],
                    "resourceNames": theirs,
                    "verbs": ["delete"],
                }
            )
        return rules

    def _ties(self) -> dict[str, Any]:
        objects = self._objects
        account = objects.task.permission_set or objects.name
        who = {"kind": "ServiceAccount", "name": account, "namespace": self._api.namespace}
        return {
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": objects.name},
            "subjects": [who],
        }
