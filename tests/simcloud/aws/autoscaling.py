"""The Auto Scaling API: what callers can do to groups, and what they are told.

moto's own has no activities, checks little and does everything at once, so this takes its place.
What groups do by themselves does not belong here, see `scaler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from tests.simcloud.aws import backends, codec, launch
from tests.simcloud.aws.calls import Call
from tests.simcloud.aws.groups import DELETING, TERMINATING, Group, Groups, Hook, Member, Scheduled
from tests.simcloud.aws.market import LaunchRefusedError
from tests.simcloud.aws.scaler import Scaler
from tests.simcloud.aws.wire import AWSError
from tests.simcloud.common.clock import Clock, stamp
from tests.simcloud.common.wire import Answer, Request

Given = Mapping[str, Any]
_RESULTS = ("CONTINUE", "ABANDON")
_HOOKS = "LifecycleHookSpecificationList"
_PAGE = 50
_MOST = 100
_IGNORED = {
    "CapacityRebalance", "DefaultInstanceWarmup", "HealthCheckGracePeriod", "HealthCheckType",
    "DefaultCooldown", "TerminationPolicies", "HonorCooldown",
}  # fmt: skip
"""Parameters that may be given and change nothing here."""
_PROCESSES = {"AZRebalance", "Launch", "ScheduledActions", "Terminate"}
_KNOWN = {
    "CreateAutoScalingGroup": {
        "AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "LaunchTemplate",
        "VPCZoneIdentifier", "AvailabilityZones", "Tags", "LifecycleHookSpecificationList",
    },
    "UpdateAutoScalingGroup": {
        "AutoScalingGroupName", "MinSize", "MaxSize", "DesiredCapacity", "LaunchTemplate",
        "VPCZoneIdentifier",
    },
    "PutScheduledUpdateGroupAction": {
        "AutoScalingGroupName", "ScheduledActionName", "StartTime", "MinSize", "MaxSize",
        "DesiredCapacity",
    },
}  # fmt: skip


class AutoScaling:
    """All operations that are known; each is called with the lock held."""

    def __init__(
        self, groups: Groups, scaler: Scaler, profiles: launch.Profiles, clock: Clock
    ) -> None:
        self._groups = groups
        self._scaler = scaler
        self._profiles = profiles
        self._clock = clock
        self._operations: Mapping[str, Callable[[str, Given], dict[str, Any] | None]] = {
            "CompleteLifecycleAction": self._complete,
            "CreateAutoScalingGroup": self._create,
            "CreateOrUpdateTags": self._tag,
            "DeleteAutoScalingGroup": self._delete,
            "DeleteScheduledAction": self._unschedule,
            "DeleteTags": self._untag,
            "DescribeAutoScalingGroups": self._describe,
            "DescribeAutoScalingInstances": self._describe_instances,
            "DescribeLifecycleHooks": self._describe_hooks,
            "DescribeScalingActivities": self._describe_activities,
            "DescribeScheduledActions": self._describe_schedule,
            "PutScheduledUpdateGroupAction": self._schedule,
            "RecordLifecycleActionHeartbeat": self._heartbeat,
            "ResumeProcesses": self._resume,
            "SetDesiredCapacity": self._set_desired,
            "SetInstanceProtection": self._protect,
            "SuspendProcesses": self._suspend,
            "TerminateInstanceInAutoScalingGroup": self._terminate,
            "UpdateAutoScalingGroup": self._update,
        }

    def answer(self, call: Call, request: Request) -> Answer:
        given = codec.parameters("autoscaling", call.operation, request)
        operation = self._operations.get(call.operation)
        foreign = given.keys() - _KNOWN.get(call.operation, given.keys()) - _IGNORED
        if operation is None or foreign:
            raise NotImplementedError(f"{call.name} {sorted(foreign)} is not known here")
        return codec.result("autoscaling", call.operation, operation(call.region, given))

    def _create(self, region: str, given: Given) -> None:
        name = given["AutoScalingGroupName"]
        present = self._groups.find(region, name)
        if present:
            waiting = (
                " and is pending delete.  Please wait until Autoscaling completes the deletion "
                "process before creating another group with the same name."
            )
            raise AWSError(
                "AlreadyExists",
                f"AutoScalingGroup by this name already exists - A group with the name {name} "
                f"already exists{waiting if present.status else ''}",
            )
        template = _reference(given.get("LaunchTemplate"))
        subnets, zones = self._places(region, given)
        desired = given.get("DesiredCapacity", given["MinSize"])
        _check_sizes(given["MinSize"], given["MaxSize"], desired)
        template = self._checked(region, template)
        today = self._clock.today()
        tags = {
            tag["Key"]: (tag.get("Value", ""), tag.get("PropagateAtLaunch", True))
            for tag in given.get("Tags", [])
        }
        group = Group(
            name,
            region,
            given["MinSize"],
            given["MaxSize"],
            0,
            template,
            subnets,
            zones,
            today,
            tags,
            hooks={hook.name: hook for hook in map(_hook, given.get(_HOOKS, []))},
        )
        self._groups.add(group)
        self._scaler.set_desired(
            group,
            desired,
            f"At {stamp(today)} a user request created an AutoScalingGroup",
        )

    def _update(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        low, high = given.get("MinSize", group.min), given.get("MaxSize", group.max)
        # The limits take the desired capacity with them, unless it is given
        desired = given.get("DesiredCapacity", min(max(group.desired, low), high))
        _check_sizes(low, high, desired)
        if "LaunchTemplate" in given:
            group.template = self._checked(region, _reference(given["LaunchTemplate"]))
        if "VPCZoneIdentifier" in given:
            group.subnets, group.zones = self._places(region, given)
            group.tried.clear()
        group.min, group.max = low, high
        self._scaler.set_desired(group, desired, self._because(group, desired))

    def _set_desired(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        desired = given["DesiredCapacity"]
        for beyond, which, limit in (
            (desired < group.min, "below min", group.min),
            (desired > group.max, "above max", group.max),
        ):
            if beyond:
                raise _invalid(
                    f"New SetDesiredCapacity value {desired} is {which} value {limit} for the "
                    f"AutoScalingGroup."
                )
        today = stamp(self._clock.today())
        self._scaler.set_desired(
            group, desired, f"At {today} a user request explicitly set group desired capacity"
        )

    def _suspend(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        today = stamp(self._clock.today())
        for name in _processes(given):
            group.suspended[name] = f"User suspended at {today}"

    def _resume(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        for name in _processes(given):
            group.suspended.pop(name, None)

    def _protect(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        for instance in given["InstanceIds"]:
            if instance not in group.members:
                raise _invalid(
                    f"The instance {instance} is not part of Auto Scaling group {group.name}."
                )
            group.members[instance].protected = given["ProtectedFromScaleIn"]

    def _delete(self, region: str, given: Given) -> None:
        group = self._found(region, given)
        if not given.get("ForceDelete", False):
            if any(activity.end is None for activity in group.activities):
                raise AWSError(
                    "ScalingActivityInProgress",
                    "You cannot delete an AutoScalingGroup while there are scaling activities in "
                    "progress for that group.",
                )
            if group.members:
                raise AWSError(
                    "ResourceInUse",
                    "You cannot delete an AutoScalingGroup while there are instances or pending "
                    "Spot instance request(s) still in the group.",
                )
        group.status = DELETING
        group.scheduled.clear()
        group.min = group.max = group.desired = 0

    def _terminate(self, region: str, given: Given) -> dict[str, Any]:
        instance = given["InstanceId"]
        group = self._groups.holding(region, instance)
        if group is None:
            raise _invalid(
                f"Instance Id not found - No managed instance found for instance ID: {instance}"
            )
        member = group.members[instance]
        if member.termination:
            return {"Activity": member.termination.described()}
        today = stamp(self._clock.today())
        cause = (
            f"At {today} instance {instance} was taken out of service in response to a user request"
        )
        if given["ShouldDecrementDesiredCapacity"]:
            if group.desired <= group.min:
                raise _invalid(
                    f"Currently, desiredSize equals minSize ({group.min}). Terminating instance "
                    f"without replacement will violate group's min size constraint. Either set "
                    f"shouldDecrementDesiredCapacity flag to false or lower group's min size."
                )
            cause += f", shrinking the capacity from {group.desired} to {group.desired - 1}"
            group.desired -= 1
        return {"Activity": self._scaler.remove(group, member, f"{cause}.").described()}

    def _heartbeat(self, region: str, given: Given) -> None:
        hook, member = self._waiting(region, given)
        most = member.waits_since + hook.longest
        member.waits[hook.name] = min(self._clock.now() + hook.timeout, most)

    def _complete(self, region: str, given: Given) -> None:
        if given["LifecycleActionResult"] not in _RESULTS:
            raise _invalid("LifecycleActionResult must be one of CONTINUE, ABANDON")
        hook, member = self._waiting(region, given)
        member.waits[hook.name] = self._clock.now()

    def _waiting(self, region: str, given: Given) -> tuple[Hook, Member]:
        """The hook that is meant, and the member that it holds."""
        group, name = self._found(region, given), given["LifecycleHookName"]
        member = group.members.get(given["InstanceId"])
        if name not in group.hooks:
            raise _invalid(f"No Lifecycle Hook found with name {name}")
        if member is None or name not in member.waits:
            raise _invalid(
                f"No active Lifecycle Action found with instance ID {given['InstanceId']}"
            )
        return group.hooks[name], member

    def _describe_hooks(self, region: str, given: Given) -> dict[str, Any]:
        group = self._found(region, given)
        return {"LifecycleHooks": [hook.described(group) for hook in group.hooks.values()]}

    def _schedule(self, region: str, given: Given) -> None:
        group = self._changeable(region, given)
        name, start = given["ScheduledActionName"], given.get("StartTime")
        if start is None:
            raise _invalid("Either start time or recurrence must be given")
        start = _aware(start)
        if start <= self._clock.today():
            raise _invalid("Given start time is in the past")
        if any(a.start == start and a.name != name for a in group.scheduled.values()):
            raise _invalid("Another scheduled action has the same start time")
        group.scheduled[name] = Scheduled(
            name, start, given.get("MinSize"), given.get("MaxSize"), given.get("DesiredCapacity")
        )

    def _unschedule(self, region: str, given: Given) -> None:
        group = self._found(region, given)
        if group.scheduled.pop(given["ScheduledActionName"], None) is None:
            raise _invalid("Scheduled action name not found")

    def _tag(self, region: str, given: Given) -> None:
        for tag in given["Tags"]:
            group = self._changeable(region, {"AutoScalingGroupName": tag["ResourceId"]})
            group.tags[tag["Key"]] = (tag.get("Value", ""), tag.get("PropagateAtLaunch", True))

    def _untag(self, region: str, given: Given) -> None:
        for tag in given["Tags"]:
            group = self._changeable(region, {"AutoScalingGroupName": tag["ResourceId"]})
            group.tags.pop(tag["Key"], None)

    def _describe(self, region: str, given: Given) -> dict[str, Any]:
        names, filters = given.get("AutoScalingGroupNames"), given.get("Filters", [])
        groups = [
            group.described()
            for group in self._groups.of_region(region)
            if (not names or group.name in names) and all(_passes(group, f) for f in filters)
        ]
        return _page("AutoScalingGroups", groups, given)

    def _describe_instances(self, region: str, given: Given) -> dict[str, Any]:
        ids = given.get("InstanceIds")
        found = [
            {**member.described(), "AutoScalingGroupName": group.name}
            for group in self._groups.of_region(region)
            for member in group.members.values()
            if not ids or member.instance.id in ids
        ]
        return _page("AutoScalingInstances", found, given)

    def _describe_activities(self, region: str, given: Given) -> dict[str, Any]:
        ids, name = given.get("ActivityIds"), given.get("AutoScalingGroupName")
        activities = list(self._groups.activities(region))
        if given.get("IncludeDeletedGroups", False):
            activities += [a for a in self._groups.past if a.group.region == region]
        elif name:
            self._found(region, given)
        found = [
            activity.described()
            for activity in activities
            if (not ids or activity.id in ids) and name in (None, activity.group.name)
        ]
        return _page("Activities", found, given)

    def _describe_schedule(self, region: str, given: Given) -> dict[str, Any]:
        name, names = given.get("AutoScalingGroupName"), given.get("ScheduledActionNames")
        if name:
            self._found(region, given)
        found = [
            action.described(group)
            for group in self._groups.of_region(region)
            if name in (None, group.name)
            for action in group.scheduled.values()
            if not names or action.name in names
        ]
        return _page("ScheduledUpdateGroupActions", found, given)

    def _found(self, region: str, given: Given) -> Group:
        name = given["AutoScalingGroupName"]
        group = self._groups.find(region, name)
        if group is None:
            raise _invalid(f"AutoScalingGroup name not found - AutoScalingGroup {name} not found")
        return group

    def _changeable(self, region: str, given: Given) -> Group:
        group = self._found(region, given)
        if group.status:
            raise _invalid("The AutoScaling group may not be modified while it is pending delete")
        return group

    def _checked(self, region: str, reference: dict[str, str]) -> dict[str, str]:
        """The reference with id and name, if an instance could be launched with it."""
        try:
            template, version = launch.find_template(region, reference)
            launch.check(region, version.data, self._profiles)
        except LaunchRefusedError as refused:
            raise _invalid(
                f"You must use a valid fully-formed launch template. {refused}"
            ) from None
        return {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": reference.get("Version", "$Default"),
        }

    def _places(self, region: str, given: Given) -> tuple[list[str], list[str]]:
        """Subnets and their zones."""
        backend = backends.ec2(region)
        subnets = {subnet.id: subnet for subnet in backend.describe_subnets()}
        ids = [
            each for each in given.get("VPCZoneIdentifier", "").replace(" ", "").split(",") if each
        ]
        zones = given.get("AvailabilityZones", [])
        if not ids:
            if not zones:
                raise _invalid("At least one Availability Zone or VPC Subnet is required.")
            defaults = (subnet for subnet in subnets.values() if subnet.default_for_az)
            ids = [subnet.id for subnet in defaults if subnet.availability_zone in zones]
        unknown = [each for each in ids if each not in subnets]
        if unknown or not ids:
            raise _invalid(f"The subnet ID '{', '.join(unknown)}' does not exist")
        return ids, sorted({subnets[each].availability_zone for each in ids})

    def _because(self, group: Group, desired: int) -> str:
        return (
            f"At {stamp(self._clock.today())} a user request update of AutoScalingGroup "
            f"constraints to min: {group.min}, max: {group.max}, desired: {desired}"
        )


def _reference(given: Given | None) -> dict[str, str]:
    if not given:
        raise _invalid(
            "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, "
            "InstanceId or MixedInstancesPolicy parameter."
        )
    if ("LaunchTemplateId" in given) == ("LaunchTemplateName" in given):
        raise _invalid("Valid requests must contain either launchTemplateId or LaunchTemplateName")
    return dict(given)


def _hook(given: Given) -> Hook:
    if given["LifecycleTransition"] != TERMINATING:
        raise NotImplementedError(f"hooks for {given['LifecycleTransition']} are not known here")
    timeout, result = given.get("HeartbeatTimeout", 3600), given.get("DefaultResult", "ABANDON")
    if not 30 <= timeout <= 7200:
        raise _invalid("HeartbeatTimeout must be between 30 and 7200 seconds")
    if result not in _RESULTS:
        raise _invalid("DefaultResult must be one of CONTINUE, ABANDON")
    return Hook(given["LifecycleHookName"], timeout, result)


def _check_sizes(low: int, high: int, desired: int) -> None:
    if low > high:
        raise _invalid("Max bound must be greater than or equal to min bound")
    if not low <= desired <= high:
        raise _invalid(
            f"Desired capacity:{desired} must be between the specified min size:{low} and max "
            f"size:{high}"
        )


def _processes(given: Given) -> list[str]:
    """Those that are named. Others would have to have an effect here, too."""
    named = list(given.get("ScalingProcesses", []))
    if not named or set(named) - _PROCESSES:
        raise NotImplementedError(f"The processes {named or 'all'} are not known here")
    return named


def _passes(group: Group, wanted: Given) -> bool:
    name, values = wanted["Name"], wanted["Values"]
    if name == "tag-key":
        return any(key in values for key in group.tags)
    if name == "tag-value":
        return any(value in values for value, _ in group.tags.values())
    if name.startswith("tag:"):
        return group.tags.get(name.removeprefix("tag:"), (None,))[0] in values
    raise _invalid(f"Filter type {name} is not correct. Allowed: tag-key, tag-value, tag:KEY")


def _page(name: str, found: list[dict[str, Any]], given: Given) -> dict[str, Any]:
    size = given.get("MaxRecords", _PAGE)
    if size > _MOST:
        raise _invalid(f"The number of records is limited to {_MOST}")
    start = int(given.get("NextToken", "0"))
    more = {"NextToken": str(start + size)} if len(found) > start + size else {}
    return {name: found[start : start + size], **more}


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _invalid(message: str) -> AWSError:
    return AWSError("ValidationError", message)
