"""The scale set of a task, and the autoscale setting that keeps its machines alive."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import policy, template
from sojourn.clouds.az.errors import code_of
from sojourn.clouds.az.on_machine import setting
from sojourn.clouds.az.reasons import reason
from sojourn.clouds.az.resources import Identity, assign
from sojourn.clouds.az.task_context import AzureContext, AzureResource
from sojourn.clouds.vm.listing import STOPPED
from sojourn.clouds.vm.machine_settings import time_of
from sojourn.clouds.vm.problems import read_problems
from sojourn.clouds.vm.scaler import VmScaler
from sojourn.clouds.vm.waiting import patiently, pause
from sojourn.core.errors import AuthError, InvalidInput, NotFound, SojournError, Transient
from sojourn.core.events import CloudEvent
from sojourn.core.interfaces import Fleet, Member
from sojourn.core.untrusted import UNREADABLE, parsed
from sojourn.storage.data import StoreData

if TYPE_CHECKING:
    from sojourn.core.context import Context

__all__ = ["AzureScaler"]

_FIRST_WITHIN = timedelta(days=7)  # for a first machine to come
_RETRY_AFTER = timedelta(seconds=60)  # a machine that could not be made makes room for another
_LOOK_BACK = timedelta(days=30)  # in the log of the subscription
_OFF = ("PowerState/stopped", "PowerState/deallocated")
_PASSING = (
    "FailedIdentityOperation",
    "InvalidResourceReference",
    "LinkedInvalidPropertyId",
    "Conflict",
)


class AzureScaler(VmScaler[AzureContext], AzureResource):
    """Azure keeps its machines alive, and ends them at a deadline whatever happens."""

    kind = "scale set"
    type = template.SET
    page = "docs/azure.md#what-machines-may-do"
    gone_within = 3600.0

    @property
    def _setting(self) -> str:
        return self._context.path(template.SETTING)

    def _group(self) -> Any:
        try:
            return self._call("GET", self.path)
        except NotFound:
            return None

    # Making and ending

    def create(self, ctx: Context) -> None:
        found = self._settled(ctx)
        if found is None or found["properties"]["provisioningState"] == "Failed":
            self._make(ctx)
        ranks = self._context.require_task().parallelism
        if self._view() is None:
            end = datetime.now(timezone.utc) + _FIRST_WITHIN
            self._write(setting.View(ranks, 0, end, enabled=False))

    def _make(self, ctx: Context) -> None:
        """What was just made may not be known yet, and somebody else may make it, too."""
        body = template.content(self._context)
        try:
            patiently(
                ctx,
                lambda: self._follow(ctx, "PUT", self.path, body),
                lambda error: code_of(error) in _PASSING,
                every=2,
            )
        except InvalidInput as error:
            raise _by_field(error) from error

    def delete(self, ctx: Context) -> None:
        """Machines go at once, whatever they do: who deletes a task has stopped it before."""
        patience = ctx.within(self.gone_within)
        with suppress(NotFound, Transient):
            self._call("DELETE", self._setting)
        while self._group() is not None:
            try:
                self._follow(patience, "DELETE", self.path, query={"forceDeletion": "true"})
            except NotFound:
                return
            except Transient as error:  # it is on its way out, with the group or for itself
                pause(patience, 1, error)

    # How many

    def _is_going(self, group: Any) -> bool:
        return str(group["properties"]["provisioningState"]) == "Deleting"

    def _size(self, group: Any) -> int:
        return int(group["sku"].get("capacity") or 0)

    def _scale(self, ctx: Context, group: Any, machines: int) -> None:
        now = self._view()
        if not machines:
            if now is not None:
                self._write(setting.View(now.ranks, 0, now.end, enabled=False))
            else:  # absent, or changed by a script into what is none of ours; `start` makes it anew
                with suppress(NotFound):
                    self._call("DELETE", self._setting)
            self._resize(0)
            self._release()
            return
        ranks = max(now.ranks if now else 0, machines)
        least = min(now.least, machines) if now and now.enabled else 0
        until = datetime.now(timezone.utc) + _FIRST_WITHIN + self._time(ctx)
        # No machine without a deadline. But the first ones we ask for, so that we learn at once
        # if Azure refuses; afterwards it keeps them alive.
        self._write(setting.View(ranks, least, until, enabled=True))
        self._allow(ctx, group)
        self._resize(machines)
        armed = self._view()  # by now a machine may have put it off
        self._write(setting.View(ranks, machines, armed.end if armed else until, enabled=True))

    def _time(self, ctx: Context) -> timedelta:
        """Until there is a first machine, the deadline is a week for one to come, and then the time
        of the task. Each machine puts it off as it starts, to the time of the task from then on."""
        return time_of(StoreData(self._context.store).load(ctx).timeout)

    def _resize(self, machines: int) -> None:
        """Not waited for: machines come and go in their own time."""
        self._call("PATCH", self.path, {"sku": {"capacity": machines}})

    def _release(self) -> None:
        """Take away, with notice, the machines that a script keeps from leaving with the others.

        Azure protects one from what is done to the scale set, but not from its own deletion.
        """
        kept = [str(each["instanceId"]) for each in self._machines() if _protected(each)]
        if kept:
            with suppress(InvalidInput, NotFound, Transient):  # gone by now; else: once more
                self._call("POST", f"{self.path}/delete", {"instanceIds": kept})

    def _allow(self, ctx: Context, scale_set: Any) -> None:
        """Let machines leave, if their identity is the task's own."""
        known = (scale_set.get("identity") or {}).get("userAssignedIdentities") or {}
        own = Identity(self._context).path.lower()
        for path, identity in known.items():
            if path.lower() == own:
                grants = policy.on_scaler(self.path, self._setting)
                principal = str(identity["principalId"])
                assign(ctx, self._context.account, self._name, principal, grants)

    def _is_stopped(self, group: Any) -> bool:
        return (group.get("tags") or {}).get(STOPPED) == "yes"

    def _mark_stopped(self, ctx: Context, group: Any, value: str) -> None:
        body = {"operation": "Merge", "properties": {"tags": {STOPPED: value}}}
        self._call("PATCH", template.tags_path(self.path), body)

    def _view(self) -> setting.View | None:
        try:
            return setting.view(self._call("GET", self._setting))
        except (NotFound, ValueError):
            return None

    def _write(self, wanted: setting.View) -> None:
        properties = {
            "name": self._name,
            "enabled": wanted.enabled,
            "targetResourceUri": self.path,
            "profiles": setting.profiles(wanted.ranks, wanted.least, wanted.end),
        }
        body = {"location": self._context.location.region, "properties": properties}
        self._call("PUT", self._setting, body)

    # What there is

    def fleet(self, ctx: Context) -> Fleet | None:
        try:
            there = self._machines()
        except NotFound:
            return None
        wanted = self._wanted()
        if wanted:
            self._renew([each for each in there if _dead(each)])
        if any(map(_protected, there)):
            wanted = max(wanted, 1)  # by a script, whoever wants none
        alive = [each for each in there if not _dead(each)]
        addresses = self._addresses() if alive else {}
        return Fleet(wanted, tuple(_machine(each, addresses) for each in alive))

    def _machines(self) -> list[Any]:
        query = {"$expand": "instanceView"}
        path = f"{self.path}/virtualMachines"
        return list(self._context.account.pages(self.title, path, query))

    def _wanted(self) -> int:
        """By Azure's own clock: it is Azure that ends machines.

        A setting that a script changed into what is none of ours keeps some, until it is gone.
        """
        try:
            content, now = self._context.account.asked(self.title, self._setting)
        except NotFound:
            return 0
        try:
            return setting.view(content).wanted(now)
        except ValueError:
            return 1

    def _renew(self, dead: list[Any]) -> None:
        """Make room for others: Azure tries again only if one that could not be made is gone."""
        before = datetime.now(timezone.utc) - _RETRY_AFTER
        old = [str(each["instanceId"]) for each in dead if _made(each) < before]
        if old:
            with suppress(SojournError):  # who only looks may not be allowed to
                self._call(
                    "POST",
                    f"{self.path}/delete",
                    {"instanceIds": old},
                    query={"forceDeletion": "true"},
                )

    def _addresses(self) -> dict[str, str]:
        """Of machines, by the ends of their ids; who may not know them does without."""
        found = {}
        with suppress(SojournError):
            path = f"{self.path}/publicipaddresses"
            for each in self._context.account.pages(self.title, path):
                inside = str(each["id"]).lower().partition("/virtualmachines/")[2]
                address = each["properties"].get("ipAddress", "")
                found[inside.partition("/")[0]] = str(address)
        return found

    def _told(self, ctx: Context) -> list[CloudEvent]:
        return [
            CloudEvent(_second(each["eventTimestamp"]), "Failed", _why(each))
            for each in self._failures()
        ]

    def _failures(self) -> list[Any]:
        """What could not be done for the scale set, oldest first, as far as we may know."""
        since = (datetime.now(timezone.utc) - _LOOK_BACK).strftime("%Y-%m-%dT%H:%M:%SZ")
        query = {
            "$filter": f"eventTimestamp ge '{since}' and resourceGroupName eq '{self._name}'",
        }
        path = "providers/Microsoft.Insights/eventtypes/management/values"
        try:
            found = list(self._context.account.pages("activity log", path, query))
        except (AuthError, NotFound, Transient):
            return []
        failed = [each for each in found if each["status"]["value"] == "Failed"]
        ours = [
            each for each in failed if "/virtualmachinescalesets/" in each["resourceId"].lower()
        ]
        return sorted(ours, key=lambda each: str(each["eventTimestamp"]))

    def _in_the_way(self, ctx: Context) -> str:
        there = self._machines()
        for each in there:
            code, text = _failure(each)
            if code:
                return reason(code, text)
        since = max((_second(str(_made(e).isoformat())) for e in there if not _dead(e)), default="")
        told = [
            *((_second(each["eventTimestamp"]), _why(each)) for each in self._failures()),
            *((each.time, each.description) for each in read_problems(self._context.store)),
        ]
        recent = [text for time, text in sorted(told) if time >= since]
        return recent[-1] if recent else ""

    def console(self, ctx: Context, machine: str) -> str:
        """Azure tells where it is, to be read without any rights."""
        path = self._path_of(machine)
        told = self._call("POST", f"{path}/retrieveBootDiagnosticsData") if path else None
        where = str((told or {}).get("serialConsoleLogBlobUri") or "")
        return self._context.account.read_end(self.title, where) if where else ""

    def interrupt(self, ctx: Context, machine: str, *, notice: bool) -> None:
        """Azure announces it to the machine unless it is forced; then another one comes."""
        path = self._path_of(machine)
        if not path:
            raise NotFound(f"No machine {machine} found")
        self._call("DELETE", path, query={} if notice else {"forceDeletion": "true"})

    def _path_of(self, machine: str) -> str:
        """It is gone: empty."""
        for each in self._machines():
            if each["properties"]["vmId"] == machine:
                return f"{self.path}/virtualMachines/{each['instanceId']}"
        return ""


def _by_field(error: InvalidInput) -> InvalidInput:
    """What Azure refuses of a machine, by the name that its user knows it by."""
    text = error.problems[0].message
    if "disk size" in text:
        return InvalidInput("disk_size", text)
    if code_of(error) in ("VMMarketplaceInvalidInput", "MarketplacePurchaseEligibilityFailed"):
        return InvalidInput("image", text)
    return error


def _statuses(machine: Any) -> list[Any]:
    return list((machine["properties"].get("instanceView") or {}).get("statuses") or ())


def _dead(machine: Any) -> bool:
    """One that could not be made, or has switched itself off: it costs, and does nothing."""
    off = any(status.get("code") in _OFF for status in _statuses(machine))
    return off or machine["properties"]["provisioningState"] == "Failed"


def _protected(machine: Any) -> bool:
    """One that does not leave when the scale set gets smaller, and has not been told to yet."""
    policy = machine["properties"].get("protectionPolicy") or {}
    return any(policy.values()) and machine["properties"]["provisioningState"] != "Deleting"


def _failure(machine: Any) -> tuple[str, str]:
    """Why it could not be made; it could: empty."""
    for status in _statuses(machine):
        kind, _, code = str(status.get("code", "")).partition("/failed/")
        if kind == "ProvisioningState" and code:
            return code, str(status.get("message", ""))
    return "", ""


def _made(machine: Any) -> datetime:
    text = str(machine["properties"].get("timeCreated") or "")
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return datetime.min.replace(tzinfo=timezone.utc)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _machine(item: Any, addresses: dict[str, str]) -> Member:
    started = _second(_made(item).isoformat())
    return Member(str(item["properties"]["vmId"]), addresses.get(item["instanceId"], ""), started)


def _second(text: str) -> str:
    """A moment as others write it, as we do."""
    return f"{text[:19]}Z"


def _why(event: Any) -> str:
    """What an entry of the log says of a failure."""
    text = str((event.get("properties") or {}).get("statusMessage", ""))
    try:
        error = parsed(text)["error"]
        return reason(str(error["code"]), str(error["message"]))
    except UNREADABLE:
        return reason("", text or str(event["operationName"]["value"]))
