"""Where an image that was made is: in a resource group of its own, whose tags tell of it.

It has to outlive the task that made it. What is in the group goes with it, finished or not, and no
two images share one: nobody deletes a group in which somebody else makes an image.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import tags

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account

__all__ = ["ImageGroup", "Told", "group_of", "told_by"]

_COMPUTE = "providers/Microsoft.Compute"


@dataclass(frozen=True)
class ImageGroup:
    """The group of an image, by the names of both and a region of Azure's."""

    scope: str  # the id of the subscription
    image: str
    region: str

    @property
    def name(self) -> str:
        return f"sojourn-image-{self.image}-{self.region}"

    @property
    def path(self) -> str:
        return f"{self.scope}/resourceGroups/{self.name}"

    @property
    def image_path(self) -> str:
        return f"{self.path}/{_COMPUTE}/images/{self.image}"

    @property
    def snapshot_path(self) -> str:
        """Of the disk; it is there only while the image is made."""
        return f"{self.path}/{_COMPUTE}/snapshots/{self.image}"


@dataclass(frozen=True)
class Told:
    """What the group of an image tells."""

    image: str
    region: str
    created: str
    base: str
    user: str
    task: str
    ready: bool
    plan: tuple[tuple[str, str], ...]


def group_of(account: Account, image: str, region: str) -> ImageGroup:
    """Where an image of this subscription is, whether or not it exists."""
    return ImageGroup(account.scope, image, region)


def told_by(group: Any) -> Told | None:
    """None: the group is none of ours."""
    marks, region = group.get("tags") or {}, str(group["location"])
    name = str(marks.get(tags.IMAGE, ""))
    if not name or str(group["name"]).lower() != ImageGroup("", name, region).name:
        return None
    going = group["properties"]["provisioningState"] == "Deleting"
    return Told(
        image=name,
        region=region,
        created=str(marks.get(tags.CREATED, "")),
        base=str(marks.get(tags.BASE, "")),
        user=str(marks.get(tags.USER, "")),
        task=str(marks.get(tags.ID, "")),
        ready=marks.get(tags.READY) == "yes" and not going,
        plan=tags.parse_plan(str(marks.get(tags.PLAN, ""))),
    )
