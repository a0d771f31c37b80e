"""Images made from machines: images of the project, which every zone can use."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp import listing, tags
from sojourn.clouds.gcp.account import Account
from sojourn.clouds.gcp.errors import reason_of
from sojourn.clouds.gcp.image_notes import note_of, own_name, told_by
from sojourn.clouds.gcp.locations import Locations
from sojourn.clouds.gcp.machines import Offers
from sojourn.clouds.vm.cleaning import Cleaner
from sojourn.clouds.vm.waiting import patiently
from sojourn.core.clock import utc
from sojourn.core.errors import Conflict, NotFound
from sojourn.core.interfaces import MadeImage

if TYPE_CHECKING:
    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["GoogleImages"]

_READY_WITHIN = 2 * 3600.0  # seconds; copying a large disk takes a while
_IMAGES = "global/images"
_EVERYWHERE = "global"  # the region of all images


class GoogleImages(Cleaner[Account, Locations, Offers]):
    """Each is one image, with the labels of its task."""

    def take(self, ctx: Context, id: TaskId, task: Task, machine: str, name: str) -> None:
        zone = self._locations.of(id, task).zone
        labels = tags.labels_of(id, task) | {tags.IMAGE: name}
        body = {
            "name": own_name(name),
            "description": note_of(name, task.image, self._offers.user_of(task), str(id)),
            "labels": labels,
            "sourceDisk": self._disk(zone, id, machine),
        }
        # The machine runs on: all that writes was ended, and the disk is flushed.
        try:
            self._account.change(
                ctx.within(_READY_WITHIN),
                f"image {name}",
                "POST",
                _IMAGES,
                body,
                forceCreate="true",
            )
        except Conflict as error:
            raise Conflict(f"Image {name} already exists", hint=error.hint) from error

    def _disk(self, zone: str, id: TaskId, machine: str) -> str:
        path = f"compute/v1/projects/{self._account.project}/zones/{zone}/instances"
        pages = self._account.pages("machines", "compute", path, filter=f"name eq {id}-.*")
        for item in (item for page in pages for item in page.get("items", ())):
            if str(item["id"]) == machine and listing.group_of(item) == str(id):
                return str(next(disk["source"] for disk in item["disks"] if disk.get("boot")))
        raise NotFound(f"Machine {machine} is gone")

    def all(self, ctx: Context, region: str = "") -> list[MadeImage]:
        path = f"compute/v1/projects/{self._account.project}/{_IMAGES}"
        pages = self._account.pages("images", "compute", path, filter=f"name eq {own_name('.*')}")
        found = [item for page in pages for item in page.get("items", ()) if told_by(item)]
        return sorted(map(_made, found), key=lambda image: image.name)

    def delete(self, ctx: Context, name: str, region: str) -> None:
        if not any(image.name == name for image in self.all(ctx)):
            return  # also one of somebody else's that has the name
        path = f"{_IMAGES}/{own_name(name)}"
        with suppress(NotFound):
            patiently(
                ctx,
                lambda: self._account.change(ctx, f"image {name}", "DELETE", path),
                lambda error: reason_of(error) == "resourceNotReady",  # it is still being made
                within=_READY_WITHIN,
            )


def _made(item: Any) -> MadeImage:
    told = told_by(item)
    return MadeImage(
        name=told["image"],
        region=_EVERYWHERE,
        created=utc(datetime.fromisoformat(item["creationTimestamp"].replace("Z", "+00:00"))),
        base=told["base"],
        ready=item["status"] == "READY",
        task=told["task"],
    )
