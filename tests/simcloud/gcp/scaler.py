"""What happens by itself: groups create, replace and delete, operations end, time limits run out.

What callers can ask of groups does not belong here, see `groups_api`.
"""

from __future__ import annotations

import threading

from tests.simcloud.gcp import properties, quotas
from tests.simcloud.gcp.groups import Group, Member
from tests.simcloud.gcp.instances import Fleet, Instance
from tests.simcloud.gcp.market import LaunchRefusedError, Market, Wanted
from tests.simcloud.gcp.operations import Failure, Operations
from tests.simcloud.gcp.project import AGENT, NUMBER, Project, timestamp
from tests.simcloud.gcp.store import Store, path_of, zonal

_IDLE = 60.0


class Scaler:
    """A thread that brings groups to what they are to be."""

    def __init__(
        self,
        project: Project,
        store: Store,
        fleet: Fleet,
        market: Market,
        operations: Operations,
        quota: quotas.Quotas,
    ) -> None:
        self._project = project
        self._store = store
        self._fleet = fleet
        self._market = market
        self._operations = operations
        self._quotas = quota
        self._changed = project.changed
        self._clock = project.clock
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="scaler", daemon=True)
        self.groups: dict[str, Group] = {}

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
            due += self._follow_times(instance, now)
        self._fleet.settle_gone()
        for group in list(self.groups.values()):
            self._look_after(group, now)
            due += self._reach(group, now)
        before = [each.done for each in self._operations.all.values()]
        due += self._operations.advance()
        if before != [each.done for each in self._operations.all.values()]:
            self._changed.notify_all()  # somebody may wait for it
            return 0.0
        return max(min(due), 0.0)

    def _follow_times(self, instance: Instance, now: float) -> list[float]:
        if instance.gone or instance.status not in ("RUNNING", "PROVISIONING"):
            return []
        due = []
        if instance.button_at is not None:
            if instance.button_at <= now:
                self.end_by_itself(instance, self._project.timing.notice)
                return []
            due.append(instance.button_at - now)
        if instance.stops_at is not None:
            if instance.stops_at <= now:
                self._run_out(instance)
                return []
            due.append(instance.stops_at - now)
        return due

    def _run_out(self, instance: Instance) -> None:
        """Its time is over. A group deletes it then, and does not replace it."""
        for group in self.groups.values():
            member = group.members.get(instance.name)
            if member and member.instance is instance:
                group.target = max(group.target - 1, 0)
                self.remove(member)
                return
        self.end_by_itself(instance, self._project.timing.shutdown)

    def end_by_itself(self, instance: Instance, within: float) -> None:
        """It is preempted: it stops, or is deleted if it says so."""
        instance.button_at = instance.stops_at = None
        assert instance.life
        if instance.scheduling.get("instanceTerminationAction") == "DELETE":
            instance.life.end(within)
        else:
            self._fleet.stop(instance, within)

    def _look_after(self, group: Group, now: float) -> None:
        """See what became of its instances."""
        for member in list(group.members.values()):
            instance = member.instance
            if instance is None:
                if member.action == "DELETING":
                    del group.members[member.name]
                continue
            lost = instance.gone or instance.status == "TERMINATED"
            if member.action == "DELETING":
                if self._deleted(instance):
                    del group.members[member.name]
            elif instance.status == "RUNNING" and not lost:
                member.action, member.failures = "NONE", []
            elif lost and group.repairs:
                self._repair(member, instance, now)

    def _repair(self, member: Member, instance: Instance, now: float) -> None:
        """Replace it, under the same name; a stopped one is deleted first."""
        if member.action != "RECREATING":
            member.action = "RECREATING"
            member.try_at = now + self._project.timing.respawn
        if self._deleted(instance):
            member.instance = None

    def _deleted(self, instance: Instance) -> bool:
        """Have it deleted; a stopped one is gone at once."""
        if not instance.gone:
            self._fleet.delete(instance)
        if instance.gone:
            self._fleet.settle_gone()
        return instance.gone

    def _reach(self, group: Group, now: float) -> list[float]:
        """Bring it to its size; returns after how many seconds to look again."""
        target = 0 if group.deleting else group.target
        staying = group.staying
        if len(staying) > target:
            idle_first = sorted(staying, key=lambda member: member.action == "NONE")
            for member in idle_first[: len(staying) - target]:
                self.remove(member)
            self._look_after(group, now)
        for _ in range(target - len(staying)):
            name = group.new_name()
            group.members[name] = Member(name)
        due = []
        for member in group.staying:
            if member.instance is None:
                if member.try_at > now:
                    due.append(member.try_at - now)
                elif not self._store.has(zonal(group.zone, "instances", member.name)):
                    self._create(group, member, now)
                    due.append(max(member.try_at - now, 0.0))
        return due

    def remove(self, member: Member) -> None:
        """Have an instance of a group deleted."""
        member.action = "DELETING"
        if member.instance and not member.instance.gone:
            self._fleet.delete(member.instance)

    def recreate(self, member: Member) -> None:
        """Have an instance of a group deleted, and another one made under its name."""
        member.action = "RECREATING"
        if member.instance and not member.instance.gone:
            self._fleet.delete(member.instance)

    def _create(self, group: Group, member: Member, now: float) -> None:
        given = self._store.get(path_of(group.template))["properties"]
        try:
            self._check_agent(group, member)
            self._check_disk(group, member)
            properties.check_in_zone(given, group.zone, self._store, self._project)
            scheduling = given.get("scheduling", {})
            spot = scheduling.get("provisioningModel") == "SPOT" or bool(
                scheduling.get("preemptible")
            )
            self._quotas.check(given, group.zone, spot)
            self._market.take(Wanted(given["machineType"], group.zone, spot))
        except LaunchRefusedError as refused:
            group.failed(member, refused.failure, timestamp(self._clock))
            member.try_at = now + self._project.timing.retry
            return
        by = f"projects/{NUMBER}/zones/{group.zone}/instanceGroupManagers/{group.name}"
        member.instance = self._fleet.create(group.zone, member.name, given, group.name, by)

    def _check_disk(self, group: Group, member: Member) -> None:
        """A boot disk has the name of its instance, and one that is kept is in the way."""
        path = zonal(group.zone, "disks", member.name)
        if self._store.has(path):
            message = f"The resource '{path}' already exists"
            raise LaunchRefusedError(Failure("RESOURCE_ALREADY_EXISTS", message, 409))

    def _check_agent(self, group: Group, member: Member) -> None:
        """Groups act by an account of Google's, whose role a careless policy takes away."""
        who, permission = f"serviceAccount:{AGENT}", "compute.instances.create"
        if not self._project.policies.may(who, permission, self._project.itself):
            path = zonal(group.zone, "instances", member.name)
            message = f"Required '{permission}' permission for '{path}'"
            raise LaunchRefusedError(Failure("PERMISSIONS_ERROR", message, 403))
