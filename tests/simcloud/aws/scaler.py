"""What groups do by themselves: launch, replace, terminate, follow their schedule, go away.

What callers can ask of groups does not belong here, see `autoscaling`.
"""

from __future__ import annotations

import math
import threading
from collections import Counter

from tests.simcloud.aws import backends, launch
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.fleet import USER, Fleet, Instance
from tests.simcloud.aws.groups import DELETING, Activity, Group, Groups, Member
from tests.simcloud.aws.market import LaunchRefusedError, Market
from tests.simcloud.common.clock import Clock, stamp

_IDLE = 60.0


class Scaler:
    """A thread that brings groups to what they are to be."""

    def __init__(
        self,
        groups: Groups,
        fleet: Fleet,
        market: Market,
        profiles: launch.Profiles,
        changed: threading.Condition,
        clock: Clock,
        timing: Timing,
    ) -> None:
        self._groups = groups
        self._fleet = fleet
        self._market = market
        self._profiles = profiles
        self._changed = changed
        self._clock = clock
        self._timing = timing
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="scaler", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if self._error:
            raise self._error

    def _run(self) -> None:
        try:
            with self._changed:
                while not self._closing:
                    self._changed.wait(self._round())
        except BaseException as error:
            self._error = error
            raise

    def _round(self) -> float:
        """Do all that can be done now, and say after how many seconds there may be more."""
        now = self._clock.now()
        due = [_IDLE]
        for instance in self._fleet.instances:
            if instance.ends_at is not None and instance.state == "running":
                due.append(instance.ends_at - now)
                if instance.ends_at <= now:
                    self._fleet.take(instance)
        for group in self._groups.all():
            self._follow_schedule(group)
            due += self._release(group, now)
            self._look_after(group)
            due += self._reach(group, now)
            due += [action.start.timestamp() - now for action in group.scheduled.values()]
        return max(min(due), 0.0)

    def _follow_schedule(self, group: Group) -> None:
        now = self._clock.today()
        for action in sorted(group.scheduled.values(), key=lambda action: action.start):
            if action.start <= now and not group.status:
                del group.scheduled[action.name]
                if "ScheduledActions" in group.suspended:
                    continue
                group.min = group.min if action.min is None else action.min
                group.max = group.max if action.max is None else action.max
                desired = group.desired if action.desired is None else action.desired
                self.set_desired(
                    group,
                    min(max(desired, group.min), group.max),
                    f"At {stamp(now)} a scheduled action update of AutoScalingGroup constraints to "
                    f"min: {group.min}, max: {group.max}, desired: {desired}",
                )

    @staticmethod
    def set_desired(group: Group, desired: int, reason: str) -> None:
        """Change how many instances a group is to have; `reason` goes into what follows of it."""
        changing = f" changing the desired capacity from {group.desired} to {desired}"
        group.reason = reason + (changing if desired != group.desired else "") + ".  "
        if desired != group.desired:
            group.tried.clear()
            group.wait_until = 0.0
        group.desired = desired

    def _look_after(self, group: Group) -> None:
        """See what became of its instances."""
        for member in list(group.members.values()):
            state = member.instance.state
            if state == "running" and member.state == "Pending":
                member.state = "InService"
                member.launch.finish(self._clock.today())
            elif state not in ("pending", "running") and not member.leaving:
                member.health = "Unhealthy"
                self.remove(
                    group,
                    member,
                    f"At {stamp(self._clock.today())} an instance was taken out of service in "
                    f"response to an EC2 health check indicating it has been terminated or "
                    f"stopped.",
                )
                group.wait_until = self._clock.now() + self._timing.respawn
            if state == "terminated" and not member.waits:
                del group.members[member.instance.id]
                assert member.termination is not None
                member.termination.finish(self._clock.today())

    def _reach(self, group: Group, now: float) -> list[float]:
        """Bring it to its size; returns after how many seconds to look again."""
        if group.status == DELETING:
            return self._dissolve(group, now)
        extra = group.members.get(group.extra)
        coming = bool(extra and extra.state.startswith("Pending"))
        excess = len(group.staying) - group.desired - coming
        for member in self._victims(group, excess) if excess > 0 else []:
            today = stamp(self._clock.today())
            size = len(group.staying)
            self.remove(
                group,
                member,
                f"{group.reason}At {today} an instance was taken out of service in response to a "
                f"difference between desired and actual capacity, shrinking the capacity from "
                f"{size} to {size - 1}.  At {today} instance {member.instance.id} was selected "
                f"for termination.",
            )
        while len(group.staying) < group.desired and "Launch" not in group.suspended:
            if group.wait_until > now:
                return [group.wait_until - now]
            self._launch(group, now)
        return self._even_out(group, now)

    def _even_out(self, group: Group, now: float) -> list[float]:
        """Launch one where there are too few. Then there is one too many, where there are most."""
        if not group.uneven or group.tried or {"AZRebalance", "Launch"} & group.suspended.keys():
            group.even_at = None
            return []
        if group.even_at is None:
            group.even_at = now + self._timing.rebalance
        if group.even_at > now:
            return [group.even_at - now]
        known = set(group.members)
        group.reason = (
            f"At {stamp(self._clock.today())} instances were launched to balance instances in "
            f"zones {' '.join(group.zones)} with other zones resulting in more than desired number "
            f"of instances in the group.  "
        )
        self._launch(group, now)
        group.extra = next(iter(set(group.members) - known), "")
        return []

    def remove(self, group: Group, member: Member, cause: str) -> Activity:
        """Terminate an instance of the group."""
        instance = member.instance
        instance.target = "Terminated"
        if not member.launch.end:
            member.launch.finish(self._clock.today(), "Cancelled")
        member.termination = group.record(
            Activity(
                group,
                f"Terminating EC2 instance: {instance.id}",
                cause,
                self._clock.today(),
                _details(instance.record.subnet_id, instance.zone),
            )
        )
        if group.hooks and group.status != DELETING:
            self._hold(group, member)
        else:
            member.state = "Terminating"
            self._fleet.terminate(instance, USER)
        return member.termination

    def _hold(self, group: Group, member: Member) -> None:
        """Have it wait for its hooks, also if its instance is lost already."""
        now = member.waits_since = self._clock.now()
        answered = math.inf if self._fleet.has_machines else self._timing.last_words
        member.state = "Terminating:Wait"
        member.waits = {
            hook.name: now + min(hook.timeout, answered) for hook in group.hooks.values()
        }

    def _release(self, group: Group, now: float) -> list[float]:
        """Go on with those whose hooks are done; returns after how many seconds others are.

        A group that is deleted by force waits for no hook.
        """
        for member in group.members.values():
            if not member.waits:
                continue
            for name, until in list(member.waits.items()):
                if until <= now or group.status == DELETING:
                    del member.waits[name]
            if not member.waits:
                member.state = "Terminating:Proceed"
                self._fleet.terminate(member.instance, USER)
        return [until - now for m in group.members.values() for until in m.waits.values()]

    def _dissolve(self, group: Group, now: float) -> list[float]:
        for member in group.staying:
            today = stamp(self._clock.today())
            self.remove(group, member, f"At {today} the group was deleted by a user request.")
        if group.members:
            return []
        if group.gone_at is None:
            group.gone_at = now + self._timing.deletion
        if group.gone_at <= now:
            self._groups.remove(group)
            return []
        return [group.gone_at - now]

    @staticmethod
    def _victims(group: Group, count: int) -> list[Member]:
        """The oldest of the fullest zones, as the default policy has it."""
        if "Terminate" in group.suspended:
            return []
        zones = Counter(member.instance.zone for member in group.staying)
        open_to_it = [member for member in group.staying if not member.protected]
        return sorted(open_to_it, key=lambda member: -zones[member.instance.zone])[:count]

    def _launch(self, group: Group, now: float) -> None:
        """Try to launch one instance, where there are fewest and it has not just failed."""
        taken = Counter(member.instance.record.subnet_id for member in group.staying)
        subnet = min((s for s in group.subnets if s not in group.tried), key=lambda s: taken[s])
        today = self._clock.today()
        size = len(group.staying)
        zone = backends.ec2(group.region).get_subnet(subnet).availability_zone
        activity = group.record(
            Activity(
                group,
                "Launching a new EC2 instance",
                f"{group.reason}At {stamp(today)} an instance was started in response to a "
                f"difference between desired and actual capacity, increasing the capacity from "
                f"{size} to {size + 1}.",
                today,
                _details(subnet, zone),
            )
        )
        try:
            instance = self._make(group, subnet)
        except LaunchRefusedError as refused:
            message = f"{str(refused).removesuffix('.')}. Launching EC2 instance failed."
            activity.description += f".  Status Reason: {message}"
            activity.finish(self._clock.today(), "Failed", message)
            self._give_up_in_time(group, now)
            group.tried.add(subnet)
            if group.tried >= set(group.subnets):
                group.tried.clear()
                group.wait_until = now + self._timing.retry
            return
        group.tried.clear()
        group.failing_since = 0.0
        activity.description += f": {instance.id}"
        activity.status = "PreInService"
        template, version = launch.find_template(group.region, group.template)
        used = {
            "LaunchTemplateId": template.id,
            "LaunchTemplateName": template.name,
            "Version": str(version.number),
        }
        group.members[instance.id] = Member(instance, used, activity)
        self._fleet.add(instance)

    def _give_up_in_time(self, group: Group, now: float) -> None:
        """A group that has tried for long enough is suspended, until somebody resumes it."""
        group.failing_since = group.failing_since or now
        if now - group.failing_since >= self._timing.give_up:
            today = stamp(self._clock.today())
            group.suspended["Launch"] = f"Administratively suspended at {today}"
            group.failing_since = 0.0

    def _make(self, group: Group, subnet: str) -> Instance:
        template, version = launch.find_template(group.region, group.template)
        tags = {key: value for key, (value, propagate) in group.tags.items() if propagate}
        tags["aws:autoscaling:groupName"] = group.name
        return launch.launch(template, version, subnet, tags, self._market, self._profiles)


def _details(subnet: str, zone: str) -> dict[str, str]:
    return {"Subnet ID": subnet, "Availability Zone": zone}
