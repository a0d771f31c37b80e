"""What a scale set does with its instances: makes, deletes, loses and restores them.

Uniform orchestration only. It keeps no count by itself: whoever deletes an instance lowers its
capacity, and so does an eviction with the policy Delete. Azure's documents do not say what comes of
this policy together with restoring: here, a new instance takes the place of the old one.

What callers ask for does not belong here, see `compute`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tests.simcloud.az import activity
from tests.simcloud.az.instances import DEALLOCATED, Event, Instance
from tests.simcloud.az.offers import Offers, Wanted
from tests.simcloud.az.parts import Parts
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.life import Lives, Phase

_HIDDEN = ("customData", "adminPassword")


class ScaleSet:
    """Kept beside the content of its resource. Its methods are called with the lock held."""

    def __init__(
        self,
        parts: Parts,
        resource: Resource,
        lives: Lives,
        offers: Offers,
        prepare: Callable[[Instance], None],
    ) -> None:
        self.parts = parts
        self.resource = resource
        self._lives = lives
        self._offers = offers
        self._prepare = prepare
        self._next = 0
        self.instances: list[Instance] = []
        self.model_number = 0
        self.profile: dict[str, Any] = {}
        self.given: dict[str, Any] = {}  # all that callers have said about it
        self.autoscaled: Callable[[], bool] = lambda: False

    # What it is told to be

    def set_model(self, profile: dict[str, Any]) -> None:
        """New instances are made from this; callers never see all of it again."""
        if profile != self.profile:
            self.model_number += 1
        self.profile = profile
        os = {key: value for key, value in profile["osProfile"].items() if key not in _HIDDEN}
        self.resource.properties["virtualMachineProfile"] = {**profile, "osProfile": os}

    @property
    def size(self) -> str:
        return str(self.resource.content["sku"]["name"])

    @property
    def capacity(self) -> int:
        return int(self.resource.content["sku"]["capacity"])

    @capacity.setter
    def capacity(self, value: int) -> None:
        self.resource.content["sku"]["capacity"] = max(value, 0)

    @property
    def spot(self) -> bool:
        return self.profile.get("priority") in ("Spot", "Low")

    def staying(self) -> list[Instance]:
        """Those that are not on their way out."""
        return [
            each
            for each in self.instances
            if not each.leaving
            if each.life.phase is not Phase.ENDING or each.stopped == DEALLOCATED
        ]

    @property
    def settled(self) -> bool:
        """Whether none is being made."""
        return all(each.state != "creating" for each in self.instances)

    # Making and deleting

    def adjust(self) -> list[Instance]:
        """Make or delete instances until there are as many as there should be."""
        missing = self.capacity - len(self.staying())
        if missing < 0:
            # One that is protected stays, however few there should be.
            open_ones = [each for each in self.staying() if not any(each.protection.values())]
            newest = sorted(open_ones, key=lambda each: each.number)[missing:]
            for each in newest:
                self._drop(each, force=False)
            return []
        extra = 1 if missing and self.resource.properties.get("overprovision", True) else 0
        return [self._launch() for _ in range(missing + extra)]

    def drop_extra(self) -> None:
        """Take back what was made beyond the capacity, to have some in reserve."""
        there = sorted(self.staying(), key=lambda each: (bool(each.failed), each.number))
        for each in there[self.capacity :]:
            if not any(each.protection.values()):
                self._drop(each, force=True)

    def delete(self, instances: list[Instance], force: bool) -> None:
        """On a call: the capacity goes down with them."""
        for each in instances:
            if each in self.staying():
                self.capacity -= 1
            self._drop(each, force)

    def _launch(self) -> Instance:
        instance = Instance(self, self._next, self._lives)
        self._next += 1
        self.instances.append(instance)
        wanted = Wanted(self.size, self.resource.location, self.spot)
        instance.failed = self._offers.allocate(wanted) or self._refusal(instance)
        if instance.failed:
            activity.note(self.parts, self.resource, instance.failed)
        else:
            instance.life.boot(self.parts.timing.launch)
        return instance

    def _refusal(self, instance: Instance) -> ArmError | None:
        """Why there cannot be one any more: its image may be gone."""
        try:
            self._prepare(instance)
            return None
        except ArmError as error:
            return error

    def _drop(self, instance: Instance, force: bool) -> None:
        if instance.failed:
            instance.life.phase = Phase.GONE
            self.lost(instance)
        elif self._notice(instance) and not force and instance.life.phase is Phase.RUNNING:
            self._announce(instance)
        else:
            instance.stopped = ""
            instance.life.end(0.0 if force else self.parts.timing.shutdown)

    def _notice(self, instance: Instance) -> float:
        """How long before its deletion an instance is told of it."""
        given = instance.profile.get("scheduledEventsProfile") or {}
        wanted = given.get("terminateNotificationProfile") or {}
        if self.parts.timing.deletion is not None:
            return self.parts.timing.deletion
        return _seconds(wanted.get("notBeforeTimeout") or "PT5M") if wanted.get("enable") else 0.0

    def _announce(self, instance: Instance) -> None:
        if instance.leaving:
            return
        instance.leaving = True
        seconds = self._notice(instance)
        event = Event("Terminate", self.parts.clock.now() + seconds)
        instance.event = event
        self.parts.schedule.after(seconds, lambda: self.begin(instance, event))

    def lost(self, instance: Instance) -> None:
        """It is gone for good."""
        if instance in self.instances:
            self.instances.remove(instance)
            self.parts.roles.forget_below(instance.id)

    # Spot

    def evict(self, instance: Instance, notice: bool) -> None:
        if not notice:
            self._evict(instance)
        elif instance.event is None:
            seconds = self.parts.timing.notice
            event = Event("Preempt", self.parts.clock.now() + seconds)
            instance.event = event
            self.parts.schedule.after(seconds, lambda: self.begin(instance, event))

    def begin(self, instance: Instance, event: Event) -> None:
        """Its time has come, or the machine has approved of it."""
        if event.started:
            return
        event.started = True
        if event.kind == "Preempt":
            self._evict(instance)
        else:
            instance.event = None
            instance.stopped = ""
            instance.life.end(self.parts.timing.shutdown)

    def _evict(self, instance: Instance) -> None:
        if instance.life.phase not in (Phase.PENDING, Phase.RUNNING):
            return
        instance.evicted = self.parts.clock.now()
        deletes = self.profile.get("evictionPolicy", "Deallocate") == "Delete"
        restores = self._restores()
        if deletes:
            if not restores:
                self.capacity -= 1
            instance.stopped = ""
            instance.life.end(0.0)
        else:
            instance.stopped = DEALLOCATED
            instance.life.end(0.0, then=Phase.STOPPED)
        instance.event = None
        if restores:
            self._try_later(instance, deletes)

    def _restores(self) -> bool:
        policy = self.resource.properties.get("spotRestorePolicy") or {}
        return bool(policy.get("enabled")) and not self.autoscaled()

    def _try_later(self, instance: Instance, deletes: bool) -> None:
        done = (Phase.GONE,) if deletes else (Phase.STOPPED, Phase.GONE)
        self.parts.schedule.after(
            self.parts.timing.restore,
            lambda: self._restore(instance, deletes),
            lambda: instance.life.phase in done,
        )

    def _restore(self, instance: Instance, deletes: bool) -> None:
        policy = self.resource.properties.get("spotRestorePolicy") or {}
        limit = _seconds(policy.get("restoreTimeout") or "PT1H")
        if self.resource.deleting or (not deletes and instance.gone):
            return
        if self.parts.clock.now() - instance.evicted > limit:
            self.capacity -= 1 if deletes else 0
        elif not self._offers.has_room(Wanted(self.size, self.resource.location, self.spot)):
            self._try_later(instance, deletes)
        elif deletes:
            if len(self.staying()) < self.capacity:
                self._launch()
        else:
            instance.evicted = 0.0
            instance.life.resume()

    # Its end

    def end(self, force: bool = False) -> None:
        """Have all of it go, with its resource or with the group."""
        self.capacity = 0
        for each in list(self.instances):
            self._drop(each, force)

    @property
    def ended(self) -> bool:
        return not self.instances


def _seconds(text: str) -> float:
    """An ISO 8601 duration, as far as it has no months."""
    found = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text)
    assert found, text
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds).total_seconds()
