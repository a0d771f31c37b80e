"""Microsoft.Compute: snapshots of the disks of instances, and managed images made of those.

The images that Azure offers do not belong here, see `catalogue`. What Azure's packages do not know,
but its documentation does: an image is made of what is not in use, such as a snapshot; it keeps a
copy, so the snapshot may go; all of it is in one region; and it is for x64 alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simcloud.az import names
from tests.simcloud.az.catalogue import Image
from tests.simcloud.az.compute import Compute
from tests.simcloud.az.filters import paged
from tests.simcloud.az.instances import Instance
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    existing_group,
    place,
)
from tests.simcloud.az.state import Resource, not_found
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.life import Lives
from tests.simcloud.common.wire import Answer

SNAPSHOT = "Microsoft.Compute/snapshots"
IMAGE = "Microsoft.Compute/images"


@dataclass(frozen=True)
class Contents:
    """What a snapshot or an image has: of which image its machine was, and its files, if any."""

    base: Image
    disk: Path | None


class Taking:
    """Answers for snapshots and images."""

    def __init__(self, parts: Parts, compute: Compute, lives: Lives) -> None:
        self._parts = parts
        self._compute = compute
        self._lives = lives

    def handlers(self) -> Handlers:
        found = self._parts.resources
        return {
            "snapshots.createOrUpdate": self._copy,
            "snapshots.get": lambda c: reply(200, found.get(c.id).content),
            "snapshots.delete": self._delete,
            "images.createOrUpdate": self._make,
            "images.get": lambda c: reply(200, found.get(c.id).content),
            "images.list": self._list,
            "images.delete": self._delete,
        }

    # Snapshots

    def _copy(self, context: Context) -> Answer:
        body = self._checked(context, SNAPSHOT, context["snapshotName"])
        given = body["properties"]["creationData"]
        if given["createOption"] != "Copy" or body["properties"].get("incremental"):
            raise NotImplementedError("only whole copies of disks are known here")
        instance = self._user_of(given["sourceResourceId"], place(body["location"]))
        former = self._parts.resources.find(context.id)
        if former:
            _check_unchanged(former, "creationData", given)
            return reply(200, former.content)
        base = instance.image
        assert base
        properties = {
            "osType": "Linux",
            "hyperVGeneration": base.generation,
            "supportedCapabilities": {"architecture": base.architecture},
            "diskSizeGB": instance.disk_size,
            "diskState": "Unattached",
            "timeCreated": self._parts.clock.today().isoformat(),
        }
        made = self._add(context, SNAPSHOT, body, properties)
        host = self._lives.host
        disk = host.capture(instance.machine) if host and instance.machine else None
        made.inner = Contents(base, disk)
        return self._finish(context, made, 202)

    def _user_of(self, disk: str, location: str) -> Instance:
        """The instance that has this disk."""
        for each in self._compute.made:
            if each.disk_id.lower() == disk.lower() and not each.gone and not each.failed:
                if each.set.resource.location != location:
                    text = f"Disk {disk} is in another region than the snapshot: {location}."
                    raise ArmError(400, "InvalidParameter", text, target="sourceResourceId")
                return each
        raise not_found(disk)

    # Images

    def _make(self, context: Context) -> Answer:
        body = self._checked(context, IMAGE, context["imageName"])
        disk = body["properties"]["storageProfile"]["osDisk"]
        if disk["osState"] != "Generalized" or disk["osType"] != "Linux":
            raise NotImplementedError("only generalized images of Linux are known here")
        former = self._parts.resources.find(context.id)
        if former:
            _check_unchanged(former, "storageProfile", body["properties"]["storageProfile"])
            return reply(200, former.content)
        source = self._source(disk, place(body["location"]))
        wanted = body["properties"].get("hyperVGeneration", "V1")
        if wanted != source.inner.base.generation:
            text = f"The Hypervisor Generation '{wanted}' is not that of the source."
            raise ArmError(400, "InvalidParameter", text, target="hyperVGeneration")
        if source.inner.base.architecture != "x64":
            text = "Managed images support no other architecture than x64."
            raise ArmError(400, "InvalidParameter", text, target="osDisk.snapshot")
        made = self._add(context, IMAGE, body, {})
        inner = made.properties["storageProfile"]["osDisk"]
        inner |= {"diskSizeGB": source.properties["diskSizeGB"], "caching": "ReadWrite"}
        made.inner = source.inner
        return self._finish(context, made, 201)

    def _source(self, disk: dict[str, Any], location: str) -> Resource:
        if "snapshot" not in disk:
            raise NotImplementedError("only images of snapshots are known here")
        other = disk["snapshot"]["id"]
        found = self._parts.resources.find(other)
        if found is None or found.location != location:
            raise ArmError(
                404, "NotFound", f"Resource {other} is not found.", target="osDisk.snapshot.id"
            )
        if found.properties["provisioningState"] != "Succeeded":
            text = f"Cannot perform the operation because {other} is not in Succeeded state."
            raise ArmError(409, "OperationNotAllowed", text)
        return found

    def _list(self, context: Context) -> Answer:
        found = self._parts.resources.of_type(IMAGE)
        return paged(context, [e.content for e in found if self._parts.resources.is_listed(e)])

    # Both

    def _checked(self, context: Context, type: str, name: str) -> dict[str, Any]:
        existing_group(self._parts, context)
        body = copy.deepcopy(context.body)
        names.check_name(type, name)
        names.check_location(type, body["location"])
        names.check_tags(body.get("tags"))
        check_same_place(self._parts.resources.find(context.id), body)
        return body

    def _add(
        self, context: Context, type: str, body: dict[str, Any], more: dict[str, Any]
    ) -> Resource:
        own_id = canonical(context.id)
        content = {
            **body,
            "id": own_id,
            "name": own_id.rpartition("/")[2],
            "type": type,
            "location": place(body["location"]),
            "properties": {**body["properties"], **more, "provisioningState": "Creating"},
        }
        return self._parts.resources.add(Resource(own_id, content))

    def _finish(self, context: Context, made: Resource, status: int) -> Answer:
        def finish() -> Any:
            made.properties["provisioningState"] = "Succeeded"
            return made.content

        return self._begin(context, made, finish, status)

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        existing_group(self._parts, context)
        return self._begin(context, found, lambda: self._parts.resources.remove(found), 202)

    def _begin(
        self, context: Context, found: Resource, finish: Callable[[], Any], status: int
    ) -> Answer:
        operations = self._parts.operations
        begun = operations.begin(
            "Microsoft.Compute", found.location, context.version, self._parts.timing.image, finish
        )
        content = None if context.call.method == "DELETE" else found.content
        return reply(status, content, operations.headers(begun, "status", "result"))


def _check_unchanged(former: Resource, name: str, given: dict[str, Any]) -> None:
    """What was made of something stays made of it; what Azure added does not matter."""
    if not _within(given, former.properties[name]):
        text = f"Changing property '{name}' is not allowed."
        raise ArmError(409, "PropertyChangeNotAllowed", text, target=name)


def _within(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(_within(value, whole.get(key)) for key, value in part.items())
    return bool(part == whole)
