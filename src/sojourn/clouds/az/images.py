"""Images made from machines: managed images, each in a resource group of its own.

A managed image cannot be made from the disk of a machine that runs, and an instance of a scale set
cannot be captured. So the disk is copied first: a snapshot, which goes when the image is there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import tags
from sojourn.clouds.az.account import Account
from sojourn.clouds.az.image_groups import ImageGroup, Told, group_of, told_by
from sojourn.clouds.az.locations import Locations
from sojourn.clouds.az.machines import Offers
from sojourn.clouds.az.regions import region as region_of
from sojourn.clouds.az.template import SET
from sojourn.clouds.vm.cleaning import Cleaner
from sojourn.clouds.vm.waiting import until_known
from sojourn.core.clock import utc_now
from sojourn.core.errors import Conflict, InvalidInput, NotFound
from sojourn.core.interfaces import MadeImage

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["AzureImages"]

_WITHIN = 2 * 3600.0  # seconds; copying a large disk takes a while
_CHEAP = "Standard_LRS"  # what is kept; the disks of machines can be of any kind


class AzureImages(Cleaner[Account, Locations, Offers]):
    """Each is ready when the tags of its group say so: then all of it is done."""

    def check(self, ctx: Context, task: Task) -> None:
        size = self._offers.find(task).size
        if size.architecture != "x64":
            raise InvalidInput(
                "machine",
                f"images cannot be made on {size.name}: managed images of Azure are for x64, not "
                f"{size.architecture}",
            )

    def take(self, ctx: Context, id: TaskId, task: Task, machine: str, name: str) -> None:
        group = group_of(self._account, name, self._locations.of(id, task).region)
        self._make_room(ctx, group)
        disk = self._disk(id, machine)
        image = self._offers.find(task).image
        marks = tags.image_tags(id, task, name, image.name.user, dict(image.plan), utc_now())
        self._write_group(group, marks)
        waiting = ctx.within(_WITHIN)
        snapshot = self._copy(waiting, group, disk, marks)
        self._make(waiting, group, snapshot, marks)
        self._follow(waiting, group, "DELETE", group.snapshot_path)
        self._write_group(group, {**marks, tags.READY: "yes"})
        until_known(ctx, lambda: self._listed(ctx, group))

    def _make_room(self, ctx: Context, group: ImageGroup) -> None:
        """What lists did not tell of yet; a finished image stays."""
        try:
            told = told_by(self._call(group, "GET", group.path))
        except NotFound:
            return
        if told is None:
            raise Conflict(
                f"Resource group {group.name} already exists and is not Sojourn's",
                hint="Choose another name, or delete the resource group.",
            )
        if told.ready:
            raise Conflict(f"Image {group.image} already exists in {group.region}")
        self.delete(ctx, group.image, group.region)

    def _disk(self, id: TaskId, machine: str) -> str:
        path = f"resourceGroups/{id}/providers/{SET}/{id}/virtualMachines"
        for item in self._account.pages(f"machines of {id}", path):
            if item["properties"]["vmId"] == machine:
                return str(item["properties"]["storageProfile"]["osDisk"]["managedDisk"]["id"])
        raise NotFound(f"Machine {machine} is gone")

    def _write_group(self, group: ImageGroup, marks: dict[str, str]) -> None:
        self._call(group, "PUT", group.path, {"location": group.region, "tags": marks})

    def _copy(self, ctx: Context, group: ImageGroup, disk: str, marks: dict[str, str]) -> Any:
        """The machine runs on: all that writes was ended, and the disk is flushed."""
        body = {
            "location": group.region,
            "tags": marks,
            "sku": {"name": _CHEAP},
            "properties": {
                "creationData": {"createOption": "Copy", "sourceResourceId": disk},
                "incremental": False,
            },
        }
        self._follow(ctx, group, "PUT", group.snapshot_path, body)
        return self._call(group, "GET", group.snapshot_path)

    def _make(self, ctx: Context, group: ImageGroup, snapshot: Any, marks: dict[str, str]) -> None:
        """As a disk of nobody's, so that Azure tells each machine its name, user and script."""
        disk = {
            "osType": "Linux",
            "osState": "Generalized",
            "snapshot": {"id": snapshot["id"]},
            "storageAccountType": _CHEAP,
        }
        properties: dict[str, Any] = {"storageProfile": {"osDisk": disk}}
        if generation := snapshot["properties"].get("hyperVGeneration"):
            properties["hyperVGeneration"] = generation
        body = {"location": group.region, "tags": marks, "properties": properties}
        self._follow(ctx, group, "PUT", group.image_path, body)

    def _listed(self, ctx: Context, group: ImageGroup) -> None:
        """Lists may learn of a group, and of its tags, a moment later."""
        if not any(i.name == group.image and i.ready for i in self.all(ctx, group.region)):
            raise NotFound(f"Image {group.image} not found in {group.region}")

    def all(self, ctx: Context, region: str = "") -> list[MadeImage]:
        where = region_of(region) if region else ""
        query = {"$filter": f"tagName eq '{tags.IMAGE}'"}
        found = [told_by(each) for each in self._account.pages("images", "resourceGroups", query)]
        told = [each for each in found if each and where in ("", each.region)]
        return sorted(map(_made, told), key=lambda image: (image.name, image.region))

    def delete(self, ctx: Context, name: str, region: str) -> None:
        """With its group, and all that a broken-off creation left in there."""
        group = group_of(self._account, name, region_of(region))
        with suppress(NotFound):
            if told_by(self._call(group, "GET", group.path)):  # else it is somebody else's
                self._follow(ctx.within(_WITHIN), group, "DELETE", group.path)

    def _call(self, group: ImageGroup, method: str, path: str, body: Any = None) -> Any:
        return self._account.call(f"image {group.image}", method, path, body)

    def _follow(
        self, ctx: Context, group: ImageGroup, method: str, path: str, body: Any = None
    ) -> None:
        self._account.follow(ctx, f"image {group.image}", method, path, body)


def _made(told: Told) -> MadeImage:
    return MadeImage(told.image, told.region, told.created, told.base, told.ready, told.task)
