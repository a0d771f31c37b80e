"""The identities that a user gives as `permission_set`."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["MUST_ALLOW", "identities"]

MUST_ALLOW = (
    "The first identity of permission_set must be allowed what machines do: read and write their "
    "container, or they do not start; delete themselves and change the autoscale setting, or they "
    "stay or are replaced until you delete the task. docs/azure.md has the roles."
)

_FORM = re.compile(
    r"/subscriptions/[\w-]+/resourceGroups/[\w.()-]+/providers/Microsoft\.ManagedIdentity"
    r"/userAssignedIdentities/[\w-]+",
    re.IGNORECASE,
)


def identities(given: str) -> tuple[str, ...]:
    """Their ids; the agent uses the first. Refuses what is none."""
    found = tuple(part.strip() for part in given.split(",") if part.strip())
    for each in found:
        if not _FORM.fullmatch(each):
            raise InvalidInput(
                "permission_set",
                "must be a comma-separated list of user-assigned identities, such as "
                "/subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.ManagedIdentity"
                f"/userAssignedIdentities/NAME, got {each!r}",
            )
    return found
