"""What all providers of the subscription share, and how a call reaches one of them."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simcloud.az.calls import Call
from tests.simcloud.az.entra import Directory, Principal
from tests.simcloud.az.longrunning import Operations
from tests.simcloud.az.roles import Roles
from tests.simcloud.az.schedule import Schedule
from tests.simcloud.az.state import Resource, Resources, group_of, not_found
from tests.simcloud.az.timing import Timing
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request


class Parts:
    """The state of the subscription, and what makes it change by itself."""

    def __init__(
        self,
        clock: Clock,
        timing: Timing,
        changed: threading.Condition,
        defects: list[BaseException],
    ) -> None:
        self.subscription = str(uuid.uuid4())
        self.clock = clock
        self.timing = timing
        self.changed = changed
        self.schedule = Schedule(changed, clock, defects)
        self.operations = Operations(self.subscription, self.schedule, clock, timing)
        self.directory = Directory(clock, timing)
        self.roles = Roles(clock)
        self.resources = Resources(clock, timing)
        self.registered: set[str] = set()
        self.locks: set[str] = set()  # scopes that nothing can be deleted in
        self.diagnostics: dict[str, Callable[[], str]] = {}  # texts, by path and query
        self.events: list[dict[str, Any]] = []  # of the activity log, oldest first

    @property
    def scope(self) -> str:
        """The id of the subscription."""
        return f"/subscriptions/{self.subscription}"


@dataclass(frozen=True)
class Context:
    """A call that came through the gate, on its way to a provider."""

    call: Call
    request: Request
    caller: Principal
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Of the resource, in the case that the caller wrote it in."""
        return self.call.path.rstrip("/")

    @property
    def version(self) -> str:
        return self.request.parameters["api-version"]

    def __getitem__(self, name: str) -> str:
        """A parameter of the path."""
        return self.call.parameters[name]


Handler = Callable[[Context], Answer]
Handlers = Mapping[str, Handler]


def canonical(id: str) -> str:
    """An id with the parts that are no names in the case that Resource Manager gives them."""
    text = re.sub("(?i)^/subscriptions/", "/subscriptions/", id)
    text = re.sub("(?i)/resourcegroups/", "/resourceGroups/", text)
    return re.sub("(?i)/providers/", "/providers/", text)


def existing_group(parts: Parts, context: Context) -> Resource:
    """The group that a resource is to be changed in."""
    group = group_of(context.id)
    found = parts.resources.find(group)
    if found is None:
        raise not_found(group)
    if found.deleting:
        raise ArmError(
            409,
            "ResourceGroupBeingDeleted",
            f"The resource group '{found.name}' is in deprovisioning state and cannot perform "
            f"this operation.",
        )
    return found


def check_same_place(former: Resource | None, body: Mapping[str, Any]) -> None:
    """What exists stays where it is."""
    if former and _plain(body["location"]) != _plain(former.location):
        name = former.name
        raise ArmError(
            409,
            "InvalidResourceLocation",
            f"The resource '{name}' already exists in location '{former.location}' in resource "
            f"group '{former.id.split('/')[4]}'. A resource with the same name cannot be created "
            f"in location '{body['location']}'. Please select a new resource name.",
        )


def _plain(location: str) -> str:
    return location.replace(" ", "").lower()


def place(location: str) -> str:
    """A location as Resource Manager writes it: `East US` is `eastus`."""
    return _plain(location)


def references(value: Any) -> Iterator[tuple[str, str]]:
    """Everything of the form `"subnet": {"id": ...}`, or a list of it: the key and the id."""
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            for one in each if isinstance(each, list) else [each]:
                if isinstance(one, dict) and isinstance(one.get("id"), str):
                    yield key, one["id"]
            yield from references(each)


def etag() -> str:
    return f'W/"{uuid.uuid4()}"'
