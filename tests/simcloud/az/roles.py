"""Role definitions and assignments, and what they let a principal do.

Which action a call needs does not belong here, see `rights`; nor how roles are managed by callers,
see `authorization`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.simcloud.az.conditions import Asked
from tests.simcloud.common.clock import Clock

OWNER = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
_CONTAINERS = "Microsoft.Storage/storageAccounts/blobServices/containers"
_DELEGATE = "Microsoft.Storage/storageAccounts/blobServices/generateUserDelegationKey/action"


@dataclass(frozen=True)
class Role:
    """A role definition."""

    id: str  # a GUID
    name: str
    actions: tuple[str, ...] = ()
    not_actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()
    not_data_actions: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ("/",)
    description: str = ""
    custom: bool = False

    def allows(self, action: str, data: bool) -> bool:
        given = self.data_actions if data else self.actions
        taken = self.not_data_actions if data else self.not_actions
        return _matches(action, given) and not _matches(action, taken)


BUILT_IN = (
    Role(OWNER, "Owner", ("*",)),
    Role(
        CONTRIBUTOR,
        "Contributor",
        ("*",),
        (
            "Microsoft.Authorization/*/Delete",
            "Microsoft.Authorization/*/Write",
            "Microsoft.Authorization/elevateAccess/Action",
        ),
    ),
    Role("acdd72a7-3385-48ef-bd42-f606fba81ae7", "Reader", ("*/read",)),
    Role(
        "18d7d88d-d35e-4fb5-a5c3-7773c20a72d9",
        "User Access Administrator",
        ("*/read", "Microsoft.Authorization/*"),
    ),
    Role(
        "f58310d9-a9f6-439a-9e8d-f62e7b41a168",
        "Role Based Access Control Administrator",
        (
            "*/read",
            "Microsoft.Authorization/roleAssignments/write",
            "Microsoft.Authorization/roleAssignments/delete",
        ),
    ),
    Role(
        "9980e02c-c2be-4d73-94e8-173b1dc7cf3c",
        "Virtual Machine Contributor",
        (
            "Microsoft.Authorization/*/read",
            "Microsoft.Compute/virtualMachines/*",
            "Microsoft.Compute/virtualMachineScaleSets/*",
            "Microsoft.Compute/disks/read",
            "Microsoft.Compute/disks/write",
            "Microsoft.Compute/disks/delete",
            "Microsoft.Network/networkInterfaces/*",
            "Microsoft.Network/networkSecurityGroups/join/action",
            "Microsoft.Network/networkSecurityGroups/read",
            "Microsoft.Network/publicIPAddresses/join/action",
            "Microsoft.Network/publicIPAddresses/read",
            "Microsoft.Network/virtualNetworks/read",
            "Microsoft.Network/virtualNetworks/subnets/join/action",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Storage/storageAccounts/listKeys/action",
            "Microsoft.Storage/storageAccounts/read",
        ),
    ),
    Role(
        "4a9ae827-6dc2-4573-8ac7-8239d42aa03f",
        "Tag Contributor",
        (
            "Microsoft.Authorization/*/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
            "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
            "Microsoft.Resources/subscriptions/resources/read",
            "Microsoft.Resources/tags/*",
        ),
    ),
    Role(
        "f1a07417-d97a-45cb-824c-7a7467783830",
        "Managed Identity Operator",
        (
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/read",
            "Microsoft.ManagedIdentity/userAssignedIdentities/*/assign/action",
            "Microsoft.Authorization/*/read",
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ),
    ),
    Role(
        BLOB_CONTRIBUTOR,
        "Storage Blob Data Contributor",
        (
            f"{_CONTAINERS}/delete",
            f"{_CONTAINERS}/read",
            f"{_CONTAINERS}/write",
            _DELEGATE,
        ),
        data_actions=tuple(
            f"{_CONTAINERS}/blobs/{each}"
            for each in ("delete", "read", "write", "move/action", "add/action")
        ),
    ),
    Role(
        "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1",
        "Storage Blob Data Reader",
        (f"{_CONTAINERS}/read", _DELEGATE),
        data_actions=(f"{_CONTAINERS}/blobs/read",),
    ),
    Role(
        "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
        "Storage Blob Data Owner",
        (f"{_CONTAINERS}/*", _DELEGATE),
        data_actions=(f"{_CONTAINERS}/blobs/*",),
    ),
)


@dataclass
class Assignment:
    """Of a role to a principal, at a scope and all that is below it."""

    name: str  # a GUID
    scope: str
    role: str
    principal: str
    content: dict[str, Any] = field(default_factory=dict)
    condition: Callable[[Asked], bool] | None = None  # of what the role allows on data
    since: float = 0.0
    until: float = float("inf")

    @property
    def id(self) -> str:
        return f"{self.scope}/providers/Microsoft.Authorization/roleAssignments/{self.name}"


class Roles:
    """All of the subscription. Its methods are called with the lock held."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.definitions = {each.id: each for each in BUILT_IN}
        self.assignments: list[Assignment] = []
        self._ended: list[Assignment] = []

    def of(self, principal: str, scope: str) -> Iterator[Role]:
        """The roles that somebody has at a scope now."""
        return (role for role, _ in self._held(principal, scope))

    def _held(self, principal: str, scope: str) -> Iterator[tuple[Role, Assignment]]:
        now = self._clock.now()
        for each in [*self.assignments, *self._ended]:
            if each.principal == principal and each.since <= now < each.until:
                role = self.definitions.get(each.role)
                if role and covers(each.scope, scope):
                    yield role, each

    def may(self, principal: str, action: str, scope: str) -> bool:
        return any(role.allows(action, data=False) for role in self.of(principal, scope))

    def may_with_data(self, principal: str, asked: Asked, scope: str) -> bool:
        """One assignment is enough whose role allows it and whose condition holds."""
        return any(
            role.allows(asked.action, data=True)
            and (each.condition is None or each.condition(asked))
            for role, each in self._held(principal, scope)
        )

    def end(self, assignment: Assignment, after: float) -> None:
        """Take it away; it may have its effect for a while yet."""
        self.assignments.remove(assignment)
        assignment.until = self._clock.now() + after
        self._ended.append(assignment)

    def forget_below(self, scope: str) -> None:
        """What is gone takes its assignments with it. Those of a principal that is gone stay."""
        self.assignments = [each for each in self.assignments if not covers(scope, each.scope)]


def covers(outer: str, inner: str) -> bool:
    """Whether a scope holds another."""
    outer, inner = outer.rstrip("/").lower(), inner.rstrip("/").lower()
    return inner == outer or inner.startswith(f"{outer}/")


def from_properties(id: str, properties: Mapping[str, Any]) -> Role:
    """A role of a caller's own, from the content of its definition."""
    permissions = properties.get("permissions") or [{}]

    def all_of(name: str) -> tuple[str, ...]:
        return tuple(each for some in permissions for each in some.get(name) or ())

    return Role(
        id,
        properties["roleName"],
        all_of("actions"),
        all_of("notActions"),
        all_of("dataActions"),
        all_of("notDataActions"),
        tuple(properties.get("assignableScopes") or ()),
        properties.get("description") or "",
        custom=True,
    )


def _matches(action: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(action.lower(), pattern.lower()) for pattern in patterns)
