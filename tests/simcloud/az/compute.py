"""Microsoft.Compute: scale sets and their instances, as callers manage them.

What a scale set does by itself does not belong here, see `scalesets`.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.simcloud.az import catalogue, names, placement, profile
from tests.simcloud.az.filters import paged
from tests.simcloud.az.instances import Instance
from tests.simcloud.az.network import check_references
from tests.simcloud.az.offers import Offers, Wanted, check_quota, check_size
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    existing_group,
    place,
)
from tests.simcloud.az.scalesets import ScaleSet
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.life import Lives
from tests.simcloud.common.wire import Answer

SET = "Microsoft.Compute/virtualMachineScaleSets"


class Compute:
    """Answers for scale sets."""

    def __init__(
        self,
        parts: Parts,
        lives: Lives,
        offers: Offers,
        prepare: Callable[[Instance], None],
        accepted: set[str],
    ) -> None:
        self._parts = parts
        self._lives = lives
        self._offers = offers
        self._prepare = prepare
        self._accepted = accepted  # plans whose terms were accepted
        self.quotas = catalogue.Quotas()
        self.made: list[Instance] = []  # all that ever were

    def handlers(self) -> Handlers:
        sets = "virtualMachineScaleSets"
        return {
            f"{sets}.createOrUpdate": self._put,
            f"{sets}.update": self._patch,
            f"{sets}.get": lambda c: reply(200, self._find(c).content),
            f"{sets}.getInstanceView": self._view,
            f"{sets}.list": self._list,
            f"{sets}.listAll": self._list,
            f"{sets}.delete": self._delete,
            f"{sets}.deleteInstances": self._delete_instances,
        }

    # Scale sets

    def _put(self, context: Context) -> Answer:
        existing_group(self._parts, context)
        body = copy.deepcopy(context.body)
        names.check_name(SET, context["vmScaleSetName"])
        names.check_location(SET, body["location"])
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        if former and body["sku"].get("capacity") is None:
            body["sku"]["capacity"] = former.inner.capacity
        identity = self._identity(body.get("identity"), canonical(context.id))
        return self._apply(context, former, body, identity)

    def _patch(self, context: Context) -> Answer:
        found = self._find(context)
        existing_group(self._parts, context)
        body = copy.deepcopy(found.inner.given)
        body["sku"]["capacity"] = found.inner.capacity
        _merge(body, context.body)
        identity = found.content.get("identity") or {}
        if "identity" in context.body:
            identity = self._identity(body["identity"], found.id)
        return self._apply(context, found, body, identity)

    def _apply(
        self,
        context: Context,
        former: Resource | None,
        body: dict[str, Any],
        identity: dict[str, Any],
    ) -> Answer:
        """Make of a scale set what the body says, if this can be."""
        names.check_tags(body.get("tags"))
        profile.check(body, self._accepted, lambda given: self.image_of(given, body["location"]))
        own_id = canonical(context.id)
        check_references(self._parts, own_id, place(body["location"]), body)
        placement.check(self._parts, place(body["location"]), body, body["sku"]["capacity"])
        self._check_room(body, former)
        if former:
            self._check_changeable(former)
            profile.check_change(former.inner, body["properties"])
        made = former or self._made(own_id, context["vmScaleSetName"], body)
        self._fill(made, body, identity)
        return self._change(context, made, "Creating" if former is None else "Updating")

    def _made(self, own_id: str, name: str, body: Mapping[str, Any]) -> Resource:
        content = {
            "name": name,
            "id": own_id,
            "type": SET,
            "location": place(body["location"]),
            "properties": {"uniqueId": str(uuid.uuid4())},
        }
        made = self._parts.resources.add(Resource(own_id, content))
        made.properties["timeCreated"] = self._parts.clock.today().isoformat()
        made.inner = ScaleSet(self._parts, made, self._lives, self._offers, self._boot)
        return made

    def _fill(self, made: Resource, body: dict[str, Any], identity: dict[str, Any]) -> None:
        made.content["tags"] = body.get("tags") or {}
        made.content["sku"] = {"tier": "Standard", **body["sku"]}
        for key, value in (("identity", identity), ("plan", body.get("plan"))):
            if value:
                made.content[key] = value
        given = {**body["properties"]}
        model = given.pop("virtualMachineProfile")
        made.properties.update(
            {"singlePlacementGroup": True, "overprovision": True, "orchestrationMode": "Uniform"}
        )
        made.properties.update(given)
        made.inner.given = copy.deepcopy(body)
        made.inner.set_model(model)

    def _change(self, context: Context, found: Resource, state: str) -> Answer:
        operation = self.scale(found, context.version, state)
        headers = self._parts.operations.headers(operation, "status")
        if context.call.method == "PATCH":
            headers |= self._parts.operations.headers(operation, "result")
        return reply(201 if state == "Creating" else 200, found.content, headers)

    def scale(self, found: Resource, version: str, state: str = "Updating") -> Any:
        """Have it have as many instances as it should, which takes its time."""
        found.properties["provisioningState"] = state
        made = found.inner.adjust()

        def finish() -> dict[str, Any]:
            found.inner.drop_extra()
            failed = next((e.failed for e in found.inner.instances if e.failed and e in made), None)
            found.properties["provisioningState"] = "Failed" if failed else "Succeeded"
            if failed:
                raise failed
            return found.content

        operation = self._parts.operations.begin(
            "Microsoft.Compute",
            found.location,
            version,
            self._parts.timing.scale_set,
            finish,
            lambda: bool(found.inner.settled),
        )
        self._parts.operations.preempt(found.going_on)
        found.going_on = operation.id
        return operation

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        parts = self._parts
        existing_group(parts, context)
        force = context.request.parameters.get("forceDeletion") == "true"
        if not found.deleting or force:
            found.deleting = True
            found.properties["provisioningState"] = "Deleting"
            found.inner.end(force)

        def finish() -> None:
            parts.resources.remove(found)
            parts.roles.forget_below(found.id)

        return self._begin(context, found, finish, lambda: bool(found.inner.ended))

    def _delete_instances(self, context: Context) -> Answer:
        found = self._parts.resources.get(context.call.scope)
        wanted = context.body["instanceIds"]
        known = {str(each.number): each for each in found.inner.instances}
        chosen = list(known) if wanted == ["*"] else wanted
        for each in chosen:
            if each not in known:
                raise ArmError(
                    400,
                    "InvalidParameter",
                    f"The provided instanceId {each} is not an active Virtual Machine Scale Set "
                    f"VM instanceId.",
                    target="instanceIds",
                )
        gone = [known[each] for each in chosen]
        force = context.request.parameters.get("forceDeletion") == "true"
        found.inner.delete(gone, force)
        return self._begin(context, found, lambda: None, lambda: all(each.gone for each in gone))

    def _begin(
        self,
        context: Context,
        found: Resource,
        finish: Callable[[], Any],
        ready: Callable[[], bool],
    ) -> Answer:
        parts = self._parts
        seconds = parts.timing.scale_set
        operation = parts.operations.begin(
            "Microsoft.Compute", found.location, context.version, seconds, finish, ready
        )
        return reply(202, None, parts.operations.headers(operation, "status", "result"))

    def _list(self, context: Context) -> Answer:
        below = ""
        if "resourceGroupName" in context.call.parameters:
            below = existing_group(self._parts, context).id
        found = self._parts.resources.of_type(SET, below)
        listed = [each.content for each in found if below or self._parts.resources.is_listed(each)]
        return paged(context, listed)

    def _view(self, context: Context) -> Answer:
        found = self._parts.resources.get(context.id.rpartition("/")[0])
        counts: dict[str, int] = {}
        for each in found.inner.instances:
            code = f"ProvisioningState/{each.provisioning.lower()}"
            counts[code] = counts.get(code, 0) + 1
        word = found.properties["provisioningState"].lower()
        code = f"ProvisioningState/{word}"
        said = {
            "virtualMachine": {
                "statusesSummary": [{"code": key, "count": n} for key, n in counts.items()]
            },
            "statuses": [{"code": code, "level": "Info", "displayStatus": f"Provisioning {word}"}],
        }
        return reply(200, said)

    # What is checked

    def _check_room(self, body: Mapping[str, Any], former: Resource | None) -> None:
        location, sku = place(body["location"]), body["sku"]
        wanted = Wanted(
            sku["name"],
            location,
            profile.spot(body["properties"]),
            profile.max_price(body["properties"]["virtualMachineProfile"]),
        )
        size = catalogue.SIZES.get(sku["name"])
        check_size(wanted, size)
        assert size
        more = sku["capacity"] - (len(former.inner.staying()) if former else 0)
        if more > 0:
            self._offers.check(wanted)
            check_quota(self.quotas, self.usage(location), wanted, size, more)

    def usage(self, location: str) -> dict[str, int]:
        """Cores that are used, by the names of quotas."""
        found: dict[str, int] = {}
        for each in self._parts.resources.of_type(SET):
            for instance in each.inner.instances if each.location == location else []:
                size = catalogue.SIZES[instance.size]
                for name in catalogue.quotas_of(size, instance.spot) if not instance.failed else ():
                    found[name] = found.get(name, 0) + size.cores
        return found

    def _check_changeable(self, found: Resource) -> None:
        """A newer change of one that exists takes the place of the older one."""
        state = found.properties["provisioningState"]
        going_on = self._parts.operations.is_going_on(found.going_on)
        if found.deleting or (going_on and state == "Creating"):
            raise ArmError(
                409,
                "Conflict",
                "The request failed due to conflict with a concurrent request. To resolve it, "
                "please refer to https://aka.ms/activitylog to get more details on the "
                "conflicting requests.",
            )

    def _identity(self, given: Mapping[str, Any] | None, own_id: str) -> dict[str, Any]:
        if not given:
            return {}
        if given.get("type") not in ("UserAssigned", "None"):
            raise NotImplementedError("only user-assigned identities are known here")
        said: dict[str, Any] = {}
        for each in given.get("userAssignedIdentities") or {}:
            found = self._parts.resources.find(each)
            if found is None:
                raise ArmError(
                    400,
                    "FailedIdentityOperation",
                    f"Identity operation for resource '{own_id}' failed with error 'Failed to "
                    f"perform resource identity operation. Status: 'BadRequest'. Response: "
                    f"'Resource '{each}' was not found.''.",
                )
            said[found.id] = {
                "principalId": found.properties["principalId"],
                "clientId": found.properties["clientId"],
            }
        if given["type"] == "UserAssigned" and not said:
            text = "The identity type UserAssigned needs identities."
            raise ArmError(400, "InvalidParameter", text, target="identity")
        return {"type": given["type"], "userAssignedIdentities": said}

    def image_of(self, reference: Mapping[str, Any], location: str = "") -> catalogue.Image | None:
        """What a machine is made from: an image of Azure's, or a finished one of the caller's."""
        if not reference.get("id"):
            names = (reference.get(key) or "" for key in ("publisher", "offer", "sku", "version"))
            return catalogue.find_image(*names)
        found = self._parts.resources.find(reference["id"])
        if found is None or found.properties["provisioningState"] != "Succeeded":
            return None
        if location and found.location != place(location):
            return None
        size = found.properties["storageProfile"]["osDisk"]["diskSizeGB"]
        base: catalogue.Image = found.inner.base
        return replace(base, disk=size)

    def _boot(self, instance: Instance) -> None:
        given = instance.profile["storageProfile"]
        image = self.image_of(given["imageReference"])
        if image is None:
            text = f"The Image '{given['imageReference'].get('id')}' cannot be found."
            raise ArmError(404, "NotFound", text, target="imageReference")
        instance.image = image
        instance.disk_size = given["osDisk"].get("diskSizeGB") or image.disk
        taken = self._parts.resources.find(given["imageReference"].get("id") or "")
        instance.disk = taken.inner.disk if taken else None
        self.made.append(instance)
        self._prepare(instance)

    def _find(self, context: Context) -> Resource:
        return self._parts.resources.get(context.id)


def _merge(whole: dict[str, Any], patch: Mapping[str, Any]) -> None:
    """Change what a patch names; tags and lists are taken as they are."""
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(whole.get(key), dict) and key != "tags":
            _merge(whole[key], value)
        else:
            whole[key] = copy.deepcopy(value)
