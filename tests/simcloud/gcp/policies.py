"""Allow policies: who has which role on what, under which condition, and since when.

Which permission a call needs does not belong here, see `rights`; nor how policies are read and
written by callers, see `policy_api`.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simcloud.common.clock import Clock
from tests.simcloud.gcp import cel
from tests.simcloud.gcp.roles import Roles
from tests.simcloud.gcp.timing import Timing

Bindings = list[dict[str, Any]]


@dataclass(frozen=True)
class Resource:
    """What a permission is needed on."""

    name: str  # as conditions see it
    type: str = ""
    """Empty: conditions do not see what it is, and its name neither. With nothing after the
    service: conditions see its name alone."""
    policies: tuple[Policy, ...] = ()  # its own, beside the one of the project
    said: str = ""  # as errors put it, if that is not its name
    list_prefix: str = ""  # of a list of objects in a bucket

    @property
    def attributes(self) -> dict[str, str]:
        if not self.type:
            return {}
        service, _, kind = self.type.partition("/")
        return {
            "resource.name": self.name,
            "resource.type": self.type if kind else "",
            "resource.service": service,
            "storage.googleapis.com/objectListPrefix": self.list_prefix,
        }


@dataclass
class Policy:
    """Of one resource. What was written takes effect after a while."""

    bindings: Bindings = field(default_factory=list)
    etag: str = field(default_factory=lambda: secrets.token_urlsafe(8) + "=")
    version: int = 1
    _before: list[tuple[float, Bindings]] = field(default_factory=list)

    def write(self, bindings: Bindings, version: int, effective_at: float) -> None:
        self._before.append((effective_at, self.bindings))
        self.bindings = copy.deepcopy([binding for binding in bindings if binding["members"]])
        self.version = version
        self.etag = secrets.token_urlsafe(8) + "="

    def effective(self, now: float) -> Bindings:
        """What counts: the newest of which all have heard."""
        for since, former in self._before:
            if since > now:
                return former
        self._before.clear()
        return self.bindings

    def members(self) -> Iterator[tuple[str, str]]:
        for binding in self.bindings:
            for member in binding["members"]:
                yield binding["role"], member


class Policies:
    """Whether somebody may do something. The project's policy is asked for every resource."""

    def __init__(self, roles: Roles, clock: Clock, timing: Timing) -> None:
        self.project = Policy()
        self._roles = roles
        self._clock = clock
        self._timing = timing

    def may(self, who: str, permission: str, resource: Resource) -> bool:
        """`who` is a member as in a binding: `serviceAccount:somebody@...`."""
        now = self._clock.now()
        return any(
            self._grants(binding, who, permission, resource.attributes)
            for policy in (self.project, *resource.policies)
            for binding in policy.effective(now)
        )

    def may_somewhere(self, who: str, permission: str) -> bool:
        """Whether the project's policy has it, on whatever condition."""
        return any(
            self._gives(binding, who, permission)
            for binding in self.project.effective(self._clock.now())
        )

    def write(self, policy: Policy, bindings: Bindings, version: int) -> None:
        policy.write(bindings, version, self._clock.now() + self._timing.policy_ready)

    def forget(self, policies: Iterable[Policy], email: str, uid: str) -> None:
        """A service account is deleted: its bindings stay, and name it as deleted."""
        former, left = f"serviceAccount:{email}", f"deleted:serviceAccount:{email}?uid={uid}"
        for policy in (self.project, *policies):
            for binding in policy.bindings:
                members = binding["members"]
                binding["members"] = [left if each == former else each for each in members]

    def _grants(
        self, binding: Mapping[str, Any], who: str, permission: str, attributes: Mapping[str, str]
    ) -> bool:
        if not self._gives(binding, who, permission):
            return False
        condition = binding.get("condition")
        return condition is None or cel.holds(condition["expression"], attributes)

    def _gives(self, binding: Mapping[str, Any], who: str, permission: str) -> bool:
        members = set(binding["members"])
        if not {who, "allUsers", "allAuthenticatedUsers"} & members:
            return False
        return self._roles.includes(binding["role"], permission)
