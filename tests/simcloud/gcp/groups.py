"""Managed instance groups as data: members, what is being done to each, errors.

What is done about them does not belong here: see `groups_api` for what callers can do and `scaler`
for what happens by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.simcloud.gcp.instances import Instance
from tests.simcloud.gcp.operations import Failure
from tests.simcloud.gcp.project import random_name
from tests.simcloud.gcp.store import link, zonal

_ACTIONS = (
    "abandoning", "creating", "creatingWithoutRetries", "deleting", "none", "recreating",
    "refreshing", "restarting", "resuming", "starting", "stopping", "suspending", "verifying",
)  # fmt: skip
_MOST_ERRORS = 100


@dataclass
class Member:
    """An instance of a group, which has its name before it exists."""

    name: str
    action: str = "CREATING"
    instance: Instance | None = None
    failures: list[Failure] = field(default_factory=list)  # of the last attempt
    try_at: float = 0.0


@dataclass
class Group:
    """A zonal group."""

    zone: str
    name: str
    record: dict[str, Any]  # what callers said of it
    target: int
    members: dict[str, Member] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    deleting: bool = False

    @property
    def path(self) -> str:
        return zonal(self.zone, "instanceGroupManagers", self.name)

    @property
    def template(self) -> str:
        return str(self.record["instanceTemplate"])

    @property
    def repairs(self) -> bool:
        policy = self.record.get("instanceLifecyclePolicy", {})
        return bool(policy.get("defaultActionOnFailure", "REPAIR") == "REPAIR")

    @property
    def staying(self) -> list[Member]:
        return [member for member in self.members.values() if member.action != "DELETING"]

    def new_name(self) -> str:
        base = self.record["baseInstanceName"]
        return f"{base}-{random_name(4, lambda end: f'{base}-{end}' in self.members)}"

    def link_of(self, member: Member) -> str:
        return link(zonal(self.zone, "instances", member.name))

    def failed(self, member: Member, failure: Failure, when: str) -> None:
        """Write down what went wrong with a member."""
        member.failures = [failure]
        self.errors.insert(
            0,
            {
                "error": {"code": failure.code, "message": failure.message},
                "instanceActionDetails": {
                    "instance": self.link_of(member),
                    "action": member.action,
                    "version": {"instanceTemplate": self.template},
                },
                "timestamp": when,
            },
        )
        del self.errors[_MOST_ERRORS:]

    def described(self) -> dict[str, Any]:
        counts = Counter(member.action.lower() for member in self.members.values())
        stable = counts["none"] == len(self.members) == self.target
        return {
            **self.record,
            "targetSize": self.target,
            "currentActions": {action: counts[action] for action in _ACTIONS},
            "status": {
                "isStable": stable,
                "versionTarget": {"isReached": True},
                "allInstancesConfig": {"effective": True},
                "stateful": {
                    "hasStatefulConfig": False,
                    "perInstanceConfigs": {"allEffective": True},
                },
            },
        }

    def listed(self) -> list[dict[str, Any]]:
        """Its members as callers see them."""
        return [self._listed(member) for member in self.members.values()]

    def _listed(self, member: Member) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "name": member.name,
            "instance": self.link_of(member),
            "currentAction": member.action,
            "version": {"instanceTemplate": self.template},
            "targetStatus": "DELETED" if member.action == "DELETING" else "RUNNING",
        }
        if member.instance and not member.instance.gone:
            shown["id"] = member.instance.id
            shown["instanceStatus"] = member.instance.status
        if member.failures:
            errors = [{"code": each.code, "message": each.message} for each in member.failures]
            shown["lastAttempt"] = {"errors": {"errors": errors}}
        return shown
