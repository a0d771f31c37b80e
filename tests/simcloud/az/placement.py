"""Microsoft.Compute: proximity placement groups."""

from __future__ import annotations

from tests.simcloud.az import names
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    existing_group,
    place,
    references,
)
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

PLACEMENT = "Microsoft.Compute/proximityPlacementGroups"


class Placement:
    """Answers for proximity placement groups."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Handlers:
        kind = "proximityPlacementGroups"
        return {
            f"{kind}.createOrUpdate": self._create,
            f"{kind}.get": lambda c: reply(200, self._parts.resources.get(c.id).content),
            f"{kind}.delete": self._delete,
        }

    def _create(self, context: Context) -> Answer:
        existing_group(self._parts, context)
        body, name = context.body, context["proximityPlacementGroupName"]
        names.check_name(PLACEMENT, name)
        names.check_location(PLACEMENT, body["location"])
        names.check_tags(body.get("tags"))
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        if former:
            former.content["tags"] = body.get("tags") or {}
            return reply(200, former.content)
        own_id = canonical(context.id)
        content = {
            "id": own_id,
            "name": name,
            "type": PLACEMENT,
            "location": place(body["location"]),
            "tags": body.get("tags") or {},
            "properties": {"proximityPlacementGroupType": "Standard", **body["properties"]},
        }
        return reply(201, self._parts.resources.add(Resource(own_id, content)).content)

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        for each in self._parts.resources:
            for key, other in references(each.properties):
                if key == "proximityPlacementGroup" and other.lower() == found.id.lower():
                    text = f"Proximity placement group {found.name} cannot be deleted: in use."
                    raise ArmError(409, "OperationNotAllowed", text)
        self._parts.resources.remove(found)
        return reply(200)


def check(parts: Parts, location: str, properties: object, capacity: int) -> None:
    """What a scale set says of where it is to be."""
    for key, other in references(properties):
        if key != "proximityPlacementGroup":
            continue
        found = parts.resources.find(other)
        if found is None or found.location != location:
            text = f"The proximity placement group {other} was not found in {location}."
            raise ArmError(404, "NotFound", text)
        if capacity > 100:
            text = "At most 100 instances can be in a proximity placement group."
            raise ArmError(400, "InvalidParameter", text)
