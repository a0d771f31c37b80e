"""Images made from machines: AMIs of the account, found by their tags."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws import tags
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.locations import Locations
from sojourn.clouds.aws.machines import Offers
from sojourn.clouds.aws.regions import region as region_of
from sojourn.clouds.vm.cleaning import Cleaner
from sojourn.clouds.vm.waiting import patiently, until_known
from sojourn.core.errors import AuthError, Conflict, NotFound, SojournError
from sojourn.core.interfaces import MadeImage
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.core.context import Context
    from sojourn.core.ids import TaskId
    from sojourn.core.task import Task

__all__ = ["AwsImages"]

_READY_WITHIN = 2 * 3600.0  # seconds; copying a large disk takes a while
_LOOK_EVERY = 5.0
_AT_ONCE = 8  # regions


class AwsImages(Cleaner[Account, Locations, Offers]):
    """Each is an AMI and the snapshots of its disks; all have the tags."""

    def take(self, ctx: Context, id: TaskId, task: Task, machine: str, name: str) -> None:
        region = self._locations.of(id, task).region
        image = self._create(region, id, task, machine, name)
        waiting = ctx.within(_READY_WITHIN)
        while True:
            found = until_known(ctx, lambda: self._described(region, image))
            if found["State"] == "available":
                return
            if found["State"] != "pending":
                why = found.get("StateReason", {}).get("Message", found["State"])
                raise SojournError(f"Could not make image {name}: {why}", hint="Try again.")
            waiting.sleep(_LOOK_EVERY)

    def _create(self, region: str, id: TaskId, task: Task, machine: str, name: str) -> str:
        """Without a reboot: all that writes was ended, and the disk is flushed."""
        marks = tags.to_list(tags.image_tags(id, task, name, self._offers.user_of(task)))
        try:
            answer = self._call(
                f"image {name}",
                region,
                "create_image",
                InstanceId=machine,
                Name=_own_name(name),
                Description=f"Made by Sojourn from {task.image}"[:255],
                NoReboot=True,
                TagSpecifications=[
                    {"ResourceType": kind, "Tags": marks} for kind in ("image", "snapshot")
                ],
            )
            return str(answer["ImageId"])
        except Conflict:
            # Our own request, whose answer was lost and which boto repeated
            for found in self._images(region, name):
                if tags.tag_of(found, tags.ID) == str(id):
                    return str(found["ImageId"])
            raise

    def _described(self, region: str, image: str) -> Any:
        answer = self._call(f"image {image}", region, "describe_images", ImageIds=[image])
        if not answer["Images"]:
            raise NotFound(f"image {image} not found")
        return answer["Images"][0]

    def all(self, ctx: Context, region: str = "") -> list[MadeImage]:
        if region:
            return self._in_region(region_of(region))
        regions = [*self._locations.regions(), *self._locations.other_regions()]
        looks = [partial(self._if_allowed, region) for region in regions]
        return [image for some in together(looks, at_once=_AT_ONCE) for image in some]

    def _if_allowed(self, region: str) -> list[MadeImage]:
        """Some regions may be closed to this user."""
        try:
            return self._in_region(region)
        except AuthError:
            return []

    def _in_region(self, region: str) -> list[MadeImage]:
        found = [_made(region, image) for image in self._images(region)]
        names = {image.name for image in found}
        # Snapshots without an image are what a broken-off deletion left.
        left = {tags.tag_of(item, tags.IMAGE): item for item in self._snapshots(region)}
        found += [
            MadeImage(name, region, ready=False, task=tags.tag_of(item, tags.ID))
            for name, item in left.items()
            if name not in names
        ]
        return sorted(found, key=lambda image: image.name)

    def delete(self, ctx: Context, name: str, region: str) -> None:
        where = region_of(region)
        for image in self._images(where, name):
            self._quietly(where, f"image {name}", "deregister_image", ImageId=image["ImageId"])
        for snapshot in self._snapshots(where, name):
            each = str(snapshot["SnapshotId"])
            delete = partial(
                self._quietly, where, f"snapshot {each}", "delete_snapshot", SnapshotId=each
            )
            # For a moment, it is still in use by the image that was removed.
            patiently(ctx, delete, lambda error: isinstance(error, Conflict))

    def _images(self, region: str, name: str = "") -> Sequence[Any]:
        answer = self._call(
            "images", region, "describe_images", Owners=["self"], Filters=_tagged(name)
        )
        found: Sequence[Any] = answer["Images"]
        return found

    def _snapshots(self, region: str, name: str = "") -> Sequence[Any]:
        answer = self._call(
            "snapshots", region, "describe_snapshots", OwnerIds=["self"], Filters=_tagged(name)
        )
        found: Sequence[Any] = answer["Snapshots"]
        return found

    def _quietly(self, region: str, what: str, operation: str, **arguments: Any) -> None:
        try:
            self._call(what, region, operation, **arguments)
        except NotFound:
            return

    def _call(self, what: str, region: str, operation: str, **arguments: Any) -> Any:
        return self._account.call(what, "ec2", region, operation, **arguments)


def _own_name(name: str) -> str:
    """An account has each name of an AMI once in a region: of two at a time, one fails."""
    return f"sojourn-{name}"


def _tagged(name: str) -> list[dict[str, Any]]:
    if name:
        return [{"Name": f"tag:{tags.IMAGE}", "Values": [name]}]
    return [{"Name": "tag-key", "Values": [tags.IMAGE]}]


def _made(region: str, image: Any) -> MadeImage:
    return MadeImage(
        name=tags.tag_of(image, tags.IMAGE),
        region=region,
        created=str(image.get("CreationDate", "")),
        base=tags.tag_of(image, tags.BASE),
        ready=image["State"] == "available",
        task=tags.tag_of(image, tags.ID),
    )
