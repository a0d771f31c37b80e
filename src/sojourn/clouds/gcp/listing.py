"""The states of many tasks from their groups and machines alone, of which one call tells hundreds.

A group has no labels of its own. What machines and laptops mark there is in the metadata that it
would give to machines; those that are there do not get it, and nobody reads it on new ones.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp.on_machine.groupmarks import MARKED, STOPPED, marks_in
from sojourn.clouds.vm.listing import GroupView, status_of, statuses
from sojourn.clouds.vm.on_machine import marks
from sojourn.core.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.gcp.locations import Locations
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.status import Status

__all__ = ["group_of", "states"]

_OURS = "name eq tpi-.*"
_STARTING = ("PROVISIONING", "STAGING", "REPAIRING")


def states(
    ctx: Context, account: Account, locations: Locations, ids: Sequence[TaskId]
) -> dict[TaskId, Status]:
    """The states of those tasks whose groups tell; the others have to be looked at."""
    ctx.check()
    groups = {group["name"]: group for group in _everywhere(account, "instanceGroupManagers")}
    machines: dict[str, list[Any]] = defaultdict(list)
    if groups:
        for item in _everywhere(account, "instances"):
            machines[group_of(item)].append(item)
    there = []
    for id in ids:  # noqa: A001
        with suppress(NotFound):  # deleted meanwhile
            locations.of(id, None)
            there.append(id)
    return statuses(there, groups, lambda group: _status(group, machines[group["name"]]))


def _everywhere(account: Account, collection: str) -> Iterator[Any]:
    path = f"compute/v1/projects/{account.project}/aggregated/{collection}"
    for page in account.pages(collection, "compute", path, filter=_OURS, maxResults=500):
        for scope in page.get("items", {}).values():
            yield from scope.get(collection, ())


def group_of(instance: Any) -> str:
    """The name of a group's machine ends with a dash and four characters."""
    return str(instance["name"]).rpartition("-")[0]


def _status(group: Any, machines: list[Any]) -> Status | None:
    """The state that a group tells; None: it does not."""
    told = marks_in(group)
    ranks = told.get("sojourn-ranks", "")
    return status_of(
        GroupView(
            ranks=marks.number(ranks),
            wanted=int(group.get("targetSize", 0)),
            reports=marks.read(_as_tags(told)),
            storing=marks.storing(_as_tags(told)),
            marked=told.get(MARKED) == "yes",
            stopped=told.get(STOPPED) == "yes",
            going=bool(group.get("currentActions", {}).get("deleting", 0)),
            serving=_in_state(machines, "RUNNING"),
            starting=_in_state(machines, *_STARTING),
            leaving=_in_state(machines, "STOPPING"),
        )
    )


def _as_tags(told: Mapping[str, str]) -> dict[str, str]:
    prefix = marks.RANK.replace(":", "-")
    return {
        f"{marks.RANK}{key.removeprefix(prefix)}": value
        for key, value in told.items()
        if key.startswith(prefix)
    }


def _in_state(machines: list[Any], *states: str) -> list[str]:
    return [str(item["id"]) for item in machines if item["status"] in states]
