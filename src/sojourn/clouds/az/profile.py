"""The identities that a user gives as `permission_set`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from sojourn.clouds.vm.identity import lacking, unchecked
from sojourn.core.errors import AuthError, InvalidInput, SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.task_context import AzureContext

__all__ = ["check_rights", "identities"]

_PAGE = "docs/azure.md"
_ROLES = "providers/Microsoft.Authorization/roleAssignments"
_LEAVING = (
    ("Microsoft.Compute/virtualMachineScaleSets", "virtualMachines/delete"),
    ("Microsoft.Insights/autoscaleSettings", "read"),
    ("Microsoft.Insights/autoscaleSettings", "write"),
)
_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_STORING = ("read", "write")
_NEEDED = (
    *(f"{kind}/{verb}" for kind, verb in _LEAVING),
    *(f"{_BLOBS}/{verb}" for verb in _STORING),
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


@dataclass(frozen=True)
class _Held:
    """A role that an identity has at a scope, be it on a condition."""

    scope: str
    permissions: tuple[Any, ...]

    def gives(self, action: str, target: str, *, data: bool) -> bool:
        """What a condition says is left to Azure."""
        kinds = ("dataActions", "notDataActions") if data else ("actions", "notActions")
        return _covers(self.scope, target) and any(
            _any(action, each.get(kinds[0])) and not _any(action, each.get(kinds[1]))
            for each in self.permissions
        )


def check_rights(context: AzureContext, identity: str, principal: str) -> list[str]:
    """Refuse an identity without the rights that machines need, if Azure tells; else there is a
    warning. `principal` is empty if we may not know it."""
    if not principal:
        action = "Microsoft.ManagedIdentity/userAssignedIdentities/read"
        return [unchecked(identity, f"you lack {action}", _NEEDED, _PAGE)]
    try:
        held = [*_held(context.account, principal)]
        missing = [*_missing(context, held)]
    except AuthError:
        who = "Microsoft.Authorization/roleAssignments/read or .../roleDefinitions/read"
        return [unchecked(identity, f"you lack {who}", _NEEDED, _PAGE)]
    except SojournError as error:
        return [unchecked(identity, error.message, _NEEDED, _PAGE)]
    if missing:
        raise lacking(identity, missing, f"{_PAGE}#what-machines-may-do")
    return []


def _missing(context: AzureContext, held: list[_Held]) -> Iterator[str]:
    for kind, verb in _LEAVING:
        action = f"{kind}/{verb}"
        if not any(each.gives(action, context.path(kind), data=False) for each in held):
            yield action
    for verb in _STORING:
        action = f"{_BLOBS}/{verb}"
        if not any(each.gives(action, context.container, data=True) for each in held):
            yield action


def _held(account: Account, principal: str) -> Iterator[_Held]:
    """Its roles at the subscription, above and below, also those of its groups."""
    known: dict[str, tuple[Any, ...]] = {}
    query = {"$filter": f"assignedTo('{principal}')"}
    for each in account.pages("permission_set", f"{account.scope}/{_ROLES}", query):
        properties = each["properties"]
        role = str(properties["roleDefinitionId"])
        if role not in known:
            found = account.call("permission_set", "GET", role)
            known[role] = tuple(found["properties"]["permissions"])
        yield _Held(str(properties["scope"]), known[role])


def _covers(scope: str, target: str) -> bool:
    """What is listed from beyond the subscription is above it."""
    if not scope.lower().startswith("/subscriptions/"):
        return True
    return f"{target}/".lower().startswith(f"{scope.rstrip('/')}/".lower())


def _any(action: str, patterns: list[str] | None) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns or ())
