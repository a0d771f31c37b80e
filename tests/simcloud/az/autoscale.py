"""Microsoft.Insights: autoscale settings, which keep the number of a scale set's instances.

Only limits are known here, no rules. A profile with a fixed date holds while it lasts, else the one
without a schedule does: so a setting can also end a scale set's machines at some time.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from tests.simcloud.az import activity, names
from tests.simcloud.az.compute import SET, Compute
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    existing_group,
    place,
)
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

SETTING = "Microsoft.Insights/autoscaleSettings"
_VERSION = "2024-11-01"  # of the calls that it makes itself


class Autoscale:
    """Answers for autoscale settings, and does what they say."""

    def __init__(self, parts: Parts, compute: Compute) -> None:
        self._parts = parts
        self._compute = compute

    def handlers(self) -> Handlers:
        kind = "autoscaleSettings"
        return {
            f"{kind}.createOrUpdate": self._put,
            f"{kind}.update": self._patch,
            f"{kind}.get": lambda c: reply(200, self._parts.resources.get(c.id).content),
            f"{kind}.delete": self._delete,
            f"{kind}.listByResourceGroup": self._list,
            "activityLogs.list": lambda c: activity.tell(self._parts, c),
        }

    def start(self) -> None:
        """Look at all settings again and again."""
        self._parts.schedule.after(self._parts.timing.autoscale, self._look)

    def _put(self, context: Context) -> Answer:
        existing_group(self._parts, context)
        body, name = context.body, context["autoscaleSettingName"]
        names.check_name(SETTING, name)
        names.check_location(SETTING, body["location"])
        names.check_tags(body.get("tags"), longest=128, most=15)
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        properties = body["properties"]
        target = self._target(properties)
        _check_profiles(properties["profiles"])
        for each in self._parts.resources.of_type(SETTING):
            if each is not former and self._target(each.properties) is target:
                text = f"The resource {target.id} has an autoscale setting already: {each.id}."
                raise ArmError(409, "Conflict", text)
        own_id = canonical(context.id)
        content = {
            "id": own_id,
            "name": name,
            "type": SETTING,
            "location": place(body["location"]),
            "tags": body.get("tags") or {},
            "properties": {"name": name, "enabled": False, "notifications": [], **properties},
        }
        if former:
            former.content.update(content)
            made = former
        else:
            made = self._parts.resources.add(Resource(own_id, content))
        target.inner.autoscaled = lambda: self._governs(target)
        return reply(200 if former else 201, made.content)

    def _patch(self, context: Context) -> Answer:
        found = self._parts.resources.get(context.id)
        given = context.body.get("properties") or {}
        if given.get("profiles"):
            _check_profiles(given["profiles"])
        found.properties.update(given)
        if context.body.get("tags") is not None:
            found.content["tags"] = context.body["tags"]
        return reply(200, found.content)

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        self._parts.resources.remove(found)
        self._parts.roles.forget_below(found.id)
        return reply(200)

    def _list(self, context: Context) -> Answer:
        group = existing_group(self._parts, context)
        found = self._parts.resources.of_type(SETTING, group.id)
        return reply(200, {"value": [each.content for each in found]})

    def _target(self, properties: dict[str, Any]) -> Resource:
        own_id = properties.get("targetResourceUri") or ""
        found = self._parts.resources.find(own_id)
        if found is None or found.type != SET:
            text = f"The target resource id '{own_id}' of the autoscale setting was not found."
            raise ArmError(400, "TargetResourceNotFound", text)
        return found

    def _governs(self, target: Resource) -> bool:
        settings = self._parts.resources.of_type(SETTING)
        return any(
            each.properties["enabled"]
            and each.properties["targetResourceUri"].lower() == target.id.lower()
            for each in settings
        )

    # What it does

    def _look(self) -> None:
        for each in self._parts.resources.of_type(SETTING):
            target = self._parts.resources.find(each.properties["targetResourceUri"])
            if each.properties["enabled"] and target and not target.deleting:
                self._apply(each, target)
        self.start()

    def _apply(self, setting: Resource, target: Resource) -> None:
        if self._parts.operations.is_going_on(target.going_on):
            return
        limits = self._profile(setting)["capacity"]
        wanted = max(target.inner.capacity, int(limits["minimum"]))
        wanted = min(wanted, int(limits["maximum"]))
        if wanted != target.inner.capacity:
            target.inner.capacity = wanted
            self._compute.scale(target, _VERSION)

    def _profile(self, setting: Resource) -> dict[str, Any]:
        now = self._parts.clock.today()
        profiles: list[dict[str, Any]] = setting.properties["profiles"]
        for each in profiles:
            date = each.get("fixedDate")
            if date and _moment(date["start"]) <= now < _moment(date["end"]):
                return each
        return next(each for each in profiles if not each.get("fixedDate"))


def _check_profiles(profiles: list[dict[str, Any]]) -> None:
    if not 1 <= len(profiles) <= 20:
        raise ArmError(400, "InvalidProfiles", "There have to be 1 to 20 profiles.")
    if all(each.get("fixedDate") for each in profiles):
        raise ArmError(400, "InvalidProfiles", "There has to be a default profile.")
    for each in profiles:
        if each.get("rules") or each.get("recurrence"):
            raise NotImplementedError("rules and recurrences of autoscale are not known here")
        limits = [each["capacity"][name] for name in ("minimum", "default", "maximum")]
        right = all(str(value).isdigit() for value in limits)
        numbers = [int(value) for value in limits] if right else [1, 0]
        if numbers != sorted(numbers) or numbers[-1] > 1000:
            text = f"The capacity of profile '{each['name']}' is invalid: {each['capacity']}."
            raise ArmError(400, "InvalidCapacity", text)
        date = each.get("fixedDate")
        if date and _moment(date["start"]) >= _moment(date["end"]):
            text = f"The fixed date of profile '{each['name']}' ends before it begins."
            raise ArmError(400, "InvalidFixedDate", text)
        if date and date.get("timeZone", "UTC") != "UTC":
            raise NotImplementedError("only the time zone UTC is known here")


def _moment(text: str) -> datetime:
    """Times without an offset are in the time zone of the profile."""
    found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
