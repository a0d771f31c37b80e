"""The managed instance group of a task."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp import listing
from sojourn.clouds.gcp.errors import reason_of
from sojourn.clouds.gcp.on_machine.groupmarks import MARKED, RANKS, STOPPED, marks_in, patch_of
from sojourn.clouds.gcp.reasons import reason
from sojourn.clouds.gcp.task_context import GoogleContext, GoogleResource
from sojourn.clouds.vm.listing import can_mark
from sojourn.clouds.vm.scaler import VmScaler
from sojourn.clouds.vm.waiting import patiently
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError, Transient
from sojourn.core.events import CloudEvent
from sojourn.core.interfaces import Fleet, Member

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.context import Context

__all__ = ["GoogleScaler"]

_HERE = ("PROVISIONING", "STAGING", "RUNNING", "STOPPING", "REPAIRING")


class GoogleScaler(VmScaler[GoogleContext], GoogleResource):
    """The group. Google keeps its machines alive, and ends each whose time is over."""

    kind = "group"
    page = "docs/gcp.md#what-machines-may-do"

    def _group(self) -> Any:
        try:
            return self._call("GET", self._context.group)
        except NotFound:
            return None

    def create(self, ctx: Context) -> None:
        wanted = self._context.require_task()
        told = {RANKS: str(wanted.parallelism)}
        if can_mark(wanted):
            told[MARKED] = "yes"
        body = {
            "name": self._name,
            "baseInstanceName": self._name,
            "instanceTemplate": f"global/instanceTemplates/{self._name}",
            "targetSize": 0,
            # Nothing that is changed of the group changes machines that are there.
            "updatePolicy": {"type": "OPPORTUNISTIC"},
            **patch_of(told),
        }
        project = self._context.account.project
        body["instanceTemplate"] = f"projects/{project}/{body['instanceTemplate']}"
        groups = f"zones/{self._context.location.zone}/instanceGroupManagers"
        try:
            self._change(ctx, "POST", groups, body)
        except Conflict:
            if self._group() is None:
                raise

    def delete(self, ctx: Context) -> None:
        patience = ctx.within(self.gone_within)
        while self._group() is not None:
            with suppress(NotFound, Transient):  # it is on its way out
                self._change(patience, "DELETE", self._context.group)
                break
            patience.sleep(1)
        # Its machines went with it, but not those that a script took out of it.
        while left := self._alive():
            self._end(left)
            patience.sleep(1)

    def _strays(self, alive: list[Any]) -> list[Any]:
        """Machines that a script took out of the group: nothing that is done to it ends them.

        The right to leave it is the right to do that.
        """
        if not alive:
            return []
        try:
            found = self._call("POST", f"{self._context.group}/listManagedInstances")
        except NotFound:
            return []  # deleted meanwhile, which looks for them itself
        inside = {
            str(item["instance"]).rpartition("/")[2] for item in found.get("managedInstances", ())
        }
        return [item for item in alive if item["name"] not in inside]

    def _end(self, machines: list[Any]) -> None:
        """Have these end, with notice; those that do already are left alone."""
        for item in machines:
            if item["status"] != "STOPPING":
                path = f"zones/{self._context.location.zone}/instances/{item['name']}"
                with suppress(NotFound, Transient):  # gone by now; else: once more
                    self._call("DELETE", path)

    def _is_going(self, group: Any) -> bool:
        return False  # Google tells nobody that it is: see `_scale`

    def _size(self, group: Any) -> int:
        return int(group.get("targetSize", 0))

    def _scale(self, ctx: Context, group: Any, machines: int) -> None:
        path = f"{self._context.group}/resize"
        patiently(
            ctx,
            lambda: self._change(ctx, "POST", path, size=machines),
            # It is being deleted, and then it is not found.
            lambda error: reason_of(error) == "resourceNotReady",
            within=self.gone_within,
        )
        if not machines:
            self._end(self._strays(self._alive()))

    def _is_stopped(self, group: Any) -> bool:
        return marks_in(group).get(STOPPED) == "yes"

    def _mark_stopped(self, ctx: Context, group: Any, value: str) -> None:
        body = patch_of({STOPPED: value}, group.get("fingerprint"))
        self._change(ctx, "PATCH", self._context.group, body)

    def fleet(self, ctx: Context) -> Fleet | None:
        group = self._group()
        if group is None:
            return None
        alive = self._alive()
        wanted = self._size(group)
        if not wanted and self._strays([each for each in alive if each["status"] != "STOPPING"]):
            wanted = 1  # by a script, whoever wants none
        return Fleet(wanted, tuple(map(_machine, alive)))

    def _alive(self) -> list[Any]:
        with suppress(NotFound):
            return [item for item in self._instances() if item["status"] in _HERE]
        return []

    def _instances(self) -> Iterator[Any]:
        account, zone = self._context.account, self._context.location.zone
        path = f"compute/v1/projects/{account.project}/zones/{zone}/instances"
        named = f"name eq {self._name}-.*"
        for page in account.pages(self.title, "compute", path, filter=named):
            for item in page.get("items", ()):
                if listing.group_of(item) == self._name:
                    yield item

    def _told(self, ctx: Context) -> list[CloudEvent]:
        return [
            CloudEvent(_utc(error["timestamp"]), error["error"]["code"], text)
            for error, text in self._errors(ctx)
        ]

    def _errors(self, ctx: Context) -> list[tuple[Any, str]]:
        """What the group could not do, oldest first, and in our words."""
        account = self._context.account
        try:
            path = f"compute/v1/projects/{account.project}/{self._context.group}/listErrors"
            pages = account.pages(self.title, "compute", path)
            found = [error for page in pages for error in page.get("items", ())]
        except NotFound:
            return []
        task = self._task(ctx) if found else None
        zone = self._context.location.zone if found else ""
        told = [
            (error, reason(error["error"]["code"], error["error"]["message"], zone, task))
            for error in found
        ]
        return sorted(told, key=lambda pair: _utc(pair[0]["timestamp"]))

    def _in_the_way(self, ctx: Context) -> str:
        since = max((_utc(item["creationTimestamp"]) for item in self._instances()), default="")
        if problem := self._problem_since(since):
            return problem
        errors = [text for error, text in self._errors(ctx) if _utc(error["timestamp"]) >= since]
        return errors[-1] if errors else ""

    def console(self, ctx: Context, machine: str) -> str:
        for item in self._instances():
            if str(item["id"]) == machine:
                zone = self._context.location.zone
                path = f"zones/{zone}/instances/{item['name']}/serialPort"
                return str(self._call("GET", path, port=1).get("contents", ""))
        return ""

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        """With notice, the group recreates it; without, its power is cut before it is deleted."""
        for item in self._instances():
            if str(item["id"]) == machine:
                break
        else:
            raise NotFound(f"Machine {machine} not found", hint="It may be gone already.")
        path = f"zones/{self._context.location.zone}/instances/{item['name']}"
        if notice:
            body = {"instances": [path]}
            self._call("POST", f"{self._context.group}/recreateInstances", body)
            return
        try:
            self._change(ctx, "POST", f"{path}/reset")
        except AuthError:
            raise  # it would have the time to save its work
        except SojournError:
            pass  # what does not run needs no more
        with suppress(NotFound):
            self._call("DELETE", path)


def _machine(item: Any) -> Member:
    [interface, *_] = item.get("networkInterfaces") or [{}]
    [access, *_] = interface.get("accessConfigs") or [{}]
    address = access.get("natIP") or interface.get("networkIP", "")
    return Member(str(item["id"]), address, _utc(item["creationTimestamp"]))


def _utc(text: str) -> str:
    """Google writes times with an offset."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
