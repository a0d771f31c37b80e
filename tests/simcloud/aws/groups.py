"""Auto Scaling groups as data: members, activities, scheduled actions.

What is done about them does not belong here: see `autoscaling` for what callers can do and `scaler`
for what happens by itself.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.simcloud.aws.backends import ACCOUNT
from tests.simcloud.aws.fleet import Instance

DELETING = "Delete in progress"
TERMINATING = "autoscaling:EC2_INSTANCE_TERMINATING"


@dataclass
class Activity:
    """Something that a group did or tried."""

    group: Group
    description: str
    cause: str
    start: datetime
    details: dict[str, str]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = "InProgress"
    message: str = ""
    end: datetime | None = None

    def finish(self, when: datetime, status: str = "Successful", message: str = "") -> None:
        self.end = when
        self.status = status
        self.message = message

    def described(self) -> dict[str, Any]:
        return {
            "ActivityId": self.id,
            "AutoScalingGroupName": self.group.name,
            "AutoScalingGroupARN": self.group.arn,
            "Description": self.description,
            "Cause": self.cause,
            "StartTime": self.start,
            "EndTime": self.end,
            "StatusCode": self.status,
            "StatusMessage": self.message or None,
            "Progress": 100 if self.end else 50,
            "Details": json.dumps(self.details),
        }


@dataclass(frozen=True)
class Hook:
    """What holds up the termination of members. Times are in seconds."""

    name: str
    timeout: int
    result: str  # what happens after the timeout; of those that terminate, the same

    @property
    def longest(self) -> float:
        """How long heartbeats can put it off."""
        return min(100 * self.timeout, 48 * 3600)

    def described(self, group: Group) -> dict[str, Any]:
        return {
            "LifecycleHookName": self.name,
            "AutoScalingGroupName": group.name,
            "LifecycleTransition": TERMINATING,
            "HeartbeatTimeout": self.timeout,
            "GlobalTimeout": int(self.longest),
            "DefaultResult": self.result,
        }


@dataclass
class Member:
    """An instance of a group."""

    instance: Instance
    template: dict[str, str]
    launch: Activity
    state: str = "Pending"
    health: str = "Healthy"
    protected: bool = False  # stays when the group gets smaller
    termination: Activity | None = None
    waits: dict[str, float] = field(default_factory=dict)  # hooks that hold it, each until when
    waits_since: float = 0.0

    @property
    def leaving(self) -> bool:
        return self.termination is not None

    def described(self) -> dict[str, Any]:
        return {
            "InstanceId": self.instance.id,
            "InstanceType": self.instance.type,
            "AvailabilityZone": self.instance.zone,
            "LifecycleState": self.state,
            "HealthStatus": self.health,
            "LaunchTemplate": self.template,
            "ProtectedFromScaleIn": self.protected,
        }


@dataclass
class Scheduled:
    """A change of a group at a certain time."""

    name: str
    start: datetime
    min: int | None
    max: int | None
    desired: int | None

    def described(self, group: Group) -> dict[str, Any]:
        return {
            "AutoScalingGroupName": group.name,
            "ScheduledActionName": self.name,
            "ScheduledActionARN": group.arn.replace(
                ":autoScalingGroup:", ":scheduledUpdateGroupAction:"
            )
            + f":scheduledActionName/{self.name}",
            "Time": self.start,
            "StartTime": self.start,
            "MinSize": self.min,
            "MaxSize": self.max,
            "DesiredCapacity": self.desired,
        }


@dataclass(eq=False)
class Group:
    """A group; `reason` is why it has to change, as activities will say."""

    name: str
    region: str
    min: int
    max: int
    desired: int
    template: dict[str, str]  # id, name and version as they were given
    subnets: list[str]
    zones: list[str]
    created: datetime
    tags: dict[str, tuple[str, bool]] = field(default_factory=dict)  # value, and on instances too
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    status: str = ""
    reason: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    activities: list[Activity] = field(default_factory=list)
    scheduled: dict[str, Scheduled] = field(default_factory=dict)
    hooks: dict[str, Hook] = field(default_factory=dict)
    tried: set[str] = field(default_factory=set)  # subnets in which a launch has just failed
    wait_until: float = 0.0  # nothing is launched before
    gone_at: float | None = None  # when its deletion is complete
    suspended: dict[str, str] = field(default_factory=dict)  # processes, and why
    failing_since: float = 0.0  # no launch succeeded since
    even_at: float | None = None  # when it evens out its zones
    extra: str = ""  # the instance that was launched for that

    @property
    def arn(self) -> str:
        where = f"arn:aws:autoscaling:{self.region}:{ACCOUNT}:autoScalingGroup"
        return f"{where}:{self.id}:autoScalingGroupName/{self.name}"

    @property
    def staying(self) -> list[Member]:
        """Those that count: started or starting, and not on their way out."""
        return [member for member in self.members.values() if not member.leaving]

    @property
    def uneven(self) -> bool:
        """Whether a zone has too many instances, and another too few."""
        zones = Counter(member.instance.zone for member in self.staying)
        counts = [zones[zone] for zone in self.zones]
        return max(counts) - min(counts) > 1

    def record(self, activity: Activity) -> Activity:
        self.activities.insert(0, activity)
        return activity

    def described(self) -> dict[str, Any]:
        described: dict[str, Any] = {
            "AutoScalingGroupName": self.name,
            "AutoScalingGroupARN": self.arn,
            "LaunchTemplate": self.template,
            "MinSize": self.min,
            "MaxSize": self.max,
            "DesiredCapacity": self.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": self.zones,
            "LoadBalancerNames": [],
            "TargetGroupARNs": [],
            "HealthCheckType": "EC2",
            "HealthCheckGracePeriod": 0,
            "Instances": [member.described() for member in self.members.values()],
            "CreatedTime": self.created,
            "SuspendedProcesses": [
                {"ProcessName": name, "SuspensionReason": why}
                for name, why in self.suspended.items()
            ],
            "VPCZoneIdentifier": ",".join(self.subnets),
            "EnabledMetrics": [],
            "Tags": self.described_tags(),
            "TerminationPolicies": ["Default"],
            "NewInstancesProtectedFromScaleIn": False,
        }
        return {**described, **({"Status": self.status} if self.status else {})}

    def described_tags(self) -> list[dict[str, Any]]:
        return [
            {
                "ResourceId": self.name,
                "ResourceType": "auto-scaling-group",
                "Key": key,
                "Value": value,
                "PropagateAtLaunch": propagate,
            }
            for key, (value, propagate) in self.tags.items()
        ]


class Groups:
    """All groups of the account, and what is still told of those that are gone."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], Group] = {}
        self.past: list[Activity] = []

    def all(self) -> list[Group]:
        return list(self._groups.values())

    def of_region(self, region: str) -> list[Group]:
        return sorted((g for g in self.all() if g.region == region), key=lambda g: g.name)

    def find(self, region: str, name: str) -> Group | None:
        return self._groups.get((region, name))

    def holding(self, region: str, instance_id: str) -> Group | None:
        groups = self.of_region(region)
        return next((group for group in groups if instance_id in group.members), None)

    def add(self, group: Group) -> None:
        self._groups[group.region, group.name] = group

    def remove(self, group: Group) -> None:
        del self._groups[group.region, group.name]
        self.past[:0] = group.activities

    def activities(self, region: str) -> Iterable[Activity]:
        found = [activity for group in self.of_region(region) for activity in group.activities]
        return sorted(found, key=lambda activity: activity.start, reverse=True)
