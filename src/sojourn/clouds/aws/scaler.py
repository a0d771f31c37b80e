"""The auto-scaling group of a task."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import listing
from sojourn.clouds.aws.errors import code_of
from sojourn.clouds.aws.placement import subnets_of
from sojourn.clouds.aws.reasons import reason
from sojourn.clouds.aws.task_context import AwsContext, AwsResource
from sojourn.clouds.aws.template import DEADLINE, HOOK
from sojourn.clouds.vm.listing import MARKED, STOPPED
from sojourn.clouds.vm.machine_settings import time_of
from sojourn.clouds.vm.scaler import VmScaler
from sojourn.clouds.vm.waiting import pause
from sojourn.core.errors import AuthError, InvalidInput, NotFound, SojournError, Transient
from sojourn.core.events import CloudEvent
from sojourn.core.interfaces import Fleet, Member
from sojourn.core.parallel import together
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.task import Task

__all__ = ["AwsScaler"]

# What is said of a profile, a template, a group or a key that is not known there yet.
_UNKNOWN = re.compile(
    r"nstance Profile|(launch template|security group|key pair)[^.]* does not exist"
)
_COME_WITHIN = timedelta(days=7)  # for machines to come, the first one and those after losses
_ALIVE = ("Pending", "InService", "Terminating", "Standby", "Quarantined", "Warmed")
_HERE = ("pending", "running", "shutting-down", "stopping")
_AT_ONCE = 200  # values of a filter
_LAUNCH = "Launch"  # a process of the group
_SCHEDULE = "ScheduledActions"  # another
_LEAVE = "Terminate"  # and the one that takes machines away
_HELD = 120  # seconds from one heartbeat to the next: a dead machine is held up for no longer
_PATIENCE = 120.0


class AwsScaler(VmScaler[AwsContext], AwsResource):
    """The group. AWS keeps its machines alive; a scheduled action ends it whatever happens."""

    kind = "group"
    service = "autoscaling"
    page = "docs/aws.md#what-machines-may-do"

    def _group(self) -> Any:
        try:
            found = self._call("describe_auto_scaling_groups", AutoScalingGroupNames=[self._name])
        except NotFound:
            return None
        groups = found["AutoScalingGroups"]
        return groups[0] if groups else None

    def create(self, ctx: Context) -> None:
        marked = {MARKED: "yes"} if listing.can_mark(self._context.require_task()) else {}
        marks = [
            listing.tag(self._name, key, value)
            for key, value in {**self._context.tags, **marked}.items()
        ]
        patience = ctx.within(_PATIENCE)
        while True:
            try:
                self._call(
                    "create_auto_scaling_group",
                    AutoScalingGroupName=self._name,
                    LaunchTemplate={
                        "LaunchTemplateName": self._name,
                        "Version": "$Latest",
                    },
                    MinSize=0,
                    MaxSize=self._context.require_task().parallelism,
                    DesiredCapacity=0,
                    VPCZoneIdentifier=",".join(subnets_of(self._context)),
                    Tags=marks,
                    LifecycleHookSpecificationList=[_hook()],
                )
                return
            except SojournError as error:
                if code_of(error) == "AlreadyExists":
                    if self._settled(ctx) is not None:
                        return
                    continue
                if not _UNKNOWN.search(error.message):
                    raise
                pause(patience, 2, error)

    def delete(self, ctx: Context) -> None:
        patience = ctx.within(self.gone_within)
        while self._group() is not None:
            with suppress(NotFound, InvalidInput, Transient):  # it is on its way out
                self._call(
                    "delete_auto_scaling_group",
                    AutoScalingGroupName=self._name,
                    ForceDelete=True,
                )
            patience.sleep(1)

    def _is_going(self, group: Any) -> bool:
        return str(group.get("Status", "")).startswith("Delete")

    def _size(self, group: Any) -> int:
        return int(group["DesiredCapacity"])

    def _scale(self, ctx: Context, group: Any, machines: int) -> None:
        if machines:
            together(
                [
                    partial(self._arm, ctx),
                    partial(self._keep_where_they_are),
                    partial(self._resume, group),
                ]
            )
        else:
            self._disarm()
        if group["MinSize"] or group["MaxSize"] < machines:
            self._reset(group, machines)
        else:
            self._call(
                "set_desired_capacity",
                AutoScalingGroupName=self._name,
                DesiredCapacity=machines,
                HonorCooldown=False,
            )
        if not machines:
            self._release(group)

    def _release(self, group: Any) -> None:
        """Take away, with notice, the machines that a script keeps from leaving with the others.

        Protection is from a group that gets smaller, not from being told to leave.
        """
        if _LEAVE in _paused(group):
            self._call(
                "resume_processes", AutoScalingGroupName=self._name, ScalingProcesses=[_LEAVE]
            )
        for machine in filter(_protected, group["Instances"]):
            with suppress(InvalidInput, NotFound, Transient):  # gone by now; else: once more
                self._call(
                    "terminate_instance_in_auto_scaling_group",
                    InstanceId=machine["InstanceId"],
                    ShouldDecrementDesiredCapacity=False,
                )

    def _reset(self, group: Any, machines: int) -> None:
        """Set the number of machines against limits that are not ours.

        A role of the user's may let machines schedule changes of their group.
        """
        self._call(
            "update_auto_scaling_group",
            AutoScalingGroupName=self._name,
            MinSize=0,
            MaxSize=max(group["MaxSize"], machines),
            DesiredCapacity=machines,
        )

    def _disarm(self) -> None:
        """Have nothing start machines again that somebody scheduled; there is nothing to end."""
        with suppress(AuthError):  # our own roles let nobody schedule anything
            self._call(
                "suspend_processes",
                AutoScalingGroupName=self._name,
                ScalingProcesses=[_SCHEDULE],
            )

    def _is_stopped(self, group: Any) -> bool:
        tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
        return tags.get(STOPPED) == "yes"

    def _mark_stopped(self, ctx: Context, group: Any, value: str) -> None:
        self._call("create_or_update_tags", Tags=[listing.tag(self._name, STOPPED, value)])

    def _arm(self, ctx: Context) -> None:
        """Have AWS end the group at a deadline, whatever becomes of us and of the machines.

        That is a week for machines to come, and then the time of the task: its timeout, and an
        hour to store the last of its work. Only laptops set it: a script that has taken over its
        machine cannot put off its end.
        """
        timeout = StoreData(self._context.store).load(ctx).timeout
        self._call(
            "put_scheduled_update_group_action",
            AutoScalingGroupName=self._name,
            ScheduledActionName=DEADLINE,
            StartTime=datetime.now(timezone.utc) + _COME_WITHIN + time_of(timeout),
            DesiredCapacity=0,
        )

    def _keep_where_they_are(self) -> None:
        """Have AWS not end a machine at work only to have as many in one zone as in another."""
        self._call(
            "suspend_processes",
            AutoScalingGroupName=self._name,
            ScalingProcesses=["AZRebalance"],
        )

    def _resume(self, group: Any) -> None:
        """AWS stops to launch machines for a group if that failed for a day."""
        ours = sorted(_paused(group) & {_LAUNCH, _SCHEDULE})
        if ours:
            self._call(
                "resume_processes",
                AutoScalingGroupName=self._name,
                ScalingProcesses=ours,
            )

    def fleet(self, ctx: Context) -> Fleet | None:
        group = self._group()
        if group is None:
            return None
        members = [
            item["InstanceId"]
            for item in group["Instances"]
            if item["LifecycleState"].startswith(_ALIVE)
        ]
        wanted = self._size(group)
        if members and (_LEAVE in _paused(group) or any(map(_protected, group["Instances"]))):
            wanted = max(wanted, 1)  # by a script, whoever wants none
        return Fleet(wanted, tuple(self._alive(members)), stuck=_stuck(group))

    def _alive(self, members: list[str]) -> list[Member]:
        """Those that EC2 does not tell to be gone; of the newest it may not know anything yet."""
        known = self._described(members)
        return [
            _machine(known[member]) if member in known else Member(member)
            for member in members
            if member not in known or known[member]["State"]["Name"] in _HERE
        ]

    def _described(self, members: list[str]) -> dict[str, Any]:
        """What EC2 knows of them. Asked for by id, one that it does not know yet is an error."""
        found: dict[str, Any] = {}
        for start in range(0, len(members), _AT_ONCE):
            named = [{"Name": "instance-id", "Values": members[start : start + _AT_ONCE]}]
            answer = self._context.call(self.title, "ec2", "describe_instances", Filters=named)
            for reservation in answer["Reservations"]:
                found |= {item["InstanceId"]: item for item in reservation["Instances"]}
        return found

    def _told(self, ctx: Context) -> list[CloudEvent]:
        activities = self._activities()
        task = self._task(ctx) if any(map(_failed, activities)) else None
        return [_event(activity, task) for activity in activities]

    def _activities(self) -> list[Any]:
        """What the group did, and what it could not do; oldest first."""
        try:
            found = self._call("describe_scaling_activities", AutoScalingGroupName=self._name)
        except NotFound:
            return []
        return list(reversed(found["Activities"]))

    def _in_the_way(self, ctx: Context) -> str:
        group = self._group()
        if group and _stuck(group):
            return f"AWS stopped trying; run `sojourn start {self._name}` to try again"
        recent: list[Any] = []
        since = ""
        for activity in self._activities():
            if _launched(activity):
                recent, since = [], _time(activity)
            elif _failed(activity):
                recent.append(activity)
        if problem := self._problem_since(since):
            return problem
        return reason(recent[-1]["StatusMessage"], self._task(ctx)) if recent else ""

    def console(self, ctx: Context, machine: str) -> str:
        """The latest of it, where the machine's type can tell; else what AWS noted after its boot.
        AWS keeps it for an hour after its end."""
        for latest in ({"Latest": True}, {}):
            try:
                answer = self._context.call(
                    self.title, "ec2", "get_console_output", InstanceId=machine, **latest
                )
                return str(answer.get("Output") or "")
            except (AuthError, NotFound, Transient):
                raise
            except SojournError:
                continue
        return ""

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        if notice:
            self._call(
                "terminate_instance_in_auto_scaling_group",
                InstanceId=machine,
                ShouldDecrementDesiredCapacity=False,
            )
            return
        self._context.call(
            self.title,
            "ec2",
            "terminate_instances",
            InstanceIds=[machine],
            SkipOsShutdown=True,
        )


def _hook() -> dict[str, Any]:
    """Without it, a machine that is taken away would have no longer than its shutdown may take."""
    return {
        "LifecycleHookName": HOOK,
        "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
        "HeartbeatTimeout": _HELD,
        "DefaultResult": "CONTINUE",
    }


def _paused(group: Any) -> set[str]:
    """What AWS does not do for it."""
    return {each["ProcessName"] for each in group.get("SuspendedProcesses", ())}


def _stuck(group: Any) -> bool:
    """Whether AWS launches nothing for it."""
    return _LAUNCH in _paused(group)


def _protected(item: Any) -> bool:
    """One that does not leave when the group gets smaller, and has not been told to yet."""
    leaves = item["LifecycleState"].startswith("Terminat")
    return bool(item.get("ProtectedFromScaleIn")) and not leaves


def _machine(item: Any) -> Member:
    started = item["LaunchTime"].strftime("%Y-%m-%dT%H:%M:%SZ")
    return Member(item["InstanceId"], _address(item), started)


def _address(item: Any) -> str:
    """In a private network, the one that jump hosts know. A public one comes a moment later."""
    running = item["State"]["Name"] == "running"
    inside = item.get("PrivateIpAddress", "") if running else ""
    return str(item.get("PublicIpAddress") or inside)


def _time(activity: Any) -> str:
    return str(activity["StartTime"].strftime("%Y-%m-%dT%H:%M:%SZ"))


def _failed(activity: Any) -> bool:
    return activity["StatusCode"] == "Failed" and bool(activity.get("StatusMessage"))


def _launched(activity: Any) -> bool:
    launching = str(activity["Description"]).startswith("Launching")
    return launching and activity["StatusCode"] in ("PreInService", "Successful")


def _event(activity: Any, task: Task | None) -> CloudEvent:
    text = str(activity["Description"])
    if _failed(activity):
        did = text.partition(".")[0]
        text = f"{did}: {reason(activity['StatusMessage'], task)}"
    return CloudEvent(_time(activity), activity["StatusCode"], text)
