"""All resources of the subscription, found by their ids as Azure finds them: whatever their case.

What a kind of resource does belongs to its provider.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.simcloud.az.timing import Timing
from tests.simcloud.az.wire import ArmError, segments
from tests.simcloud.common.clock import Clock


@dataclass
class Resource:
    """One of any kind. The content is what a caller is told."""

    id: str
    content: dict[str, Any]
    going_on: str = ""  # the id of the operation that changes it
    inner: Any = None  # what its provider keeps beside the content
    deleting: bool = False
    listed: float = 0.0  # when lists over groups begin to have it

    @property
    def name(self) -> str:
        return self.id.rpartition("/")[2]

    @property
    def type(self) -> str:
        return str(self.content["type"])

    @property
    def location(self) -> str:
        return str(self.content["location"])

    @property
    def tags(self) -> dict[str, str]:
        return dict(self.content.get("tags") or {})

    @property
    def properties(self) -> dict[str, Any]:
        properties: dict[str, Any] = self.content["properties"]
        return properties


class Resources:
    """Those that there are, in the order in which they were made."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._all: dict[str, Resource] = {}

    def add(self, resource: Resource) -> Resource:
        if not resource.listed:
            resource.listed = self._clock.now() + self._timing.listed
        self._all[resource.id.lower()] = resource
        return resource

    def remove(self, resource: Resource) -> None:
        """With all that is inside of it."""
        self._all.pop(resource.id.lower(), None)
        for each in list(self.below(resource.id)):
            self._all.pop(each.id.lower(), None)

    def find(self, id: str) -> Resource | None:
        return self._all.get(id.rstrip("/").lower())

    def get(self, id: str) -> Resource:
        found = self.find(id)
        if found is None:
            raise not_found(id)
        return found

    def below(self, id: str) -> Iterator[Resource]:
        prefix = id.rstrip("/").lower() + "/"
        return (each for key, each in list(self._all.items()) if key.startswith(prefix))

    def of_type(self, type: str, below: str = "") -> list[Resource]:
        inside = self.below(below) if below else iter(list(self._all.values()))
        return [each for each in inside if each.type.lower() == type.lower()]

    def is_listed(self, resource: Resource) -> bool:
        """Whether a list over groups has it already; by its id it is found at once."""
        return resource.listed <= self._clock.now()

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._all.values()))


def group_of(id: str) -> str:
    """The id of the group that a resource is in, or of the subscription."""
    parts = segments(id)
    if len(parts) >= 4 and parts[2].lower() == "resourcegroups":
        return "/" + "/".join(parts[:4])
    return "/" + "/".join(parts[:2])


def not_found(id: str) -> ArmError:
    """As Resource Manager says it, of a group or of what is in one."""
    parts = segments(id)
    group = parts[3] if len(parts) > 3 else ""
    if len(parts) <= 4:
        return ArmError(
            404, "ResourceGroupNotFound", f"Resource group '{group}' could not be found."
        )
    what = "/".join(parts[5:])
    return ArmError(
        404,
        "ResourceNotFound",
        f"The Resource '{parts[5]}/{what.partition('/')[2]}' under resource group '{group}' was "
        f"not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
    )
