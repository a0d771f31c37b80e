"""Microsoft.ManagedIdentity: identities that machines can have."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simcloud.az import names
from tests.simcloud.az.entra import Directory, Principal
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    existing_group,
    place,
)
from tests.simcloud.az.state import Resource
from tests.simcloud.az.wire import reply
from tests.simcloud.common.wire import Answer

IDENTITY = "Microsoft.ManagedIdentity/userAssignedIdentities"


@dataclass
class Identity:
    """What is kept of an identity beside what callers are told."""

    principal: Principal
    directory: Directory

    def forget(self) -> None:
        """Its roles stay assigned to nobody."""
        self.directory.remove(self.principal.object_id)


class Identities:
    """Answers for Microsoft.ManagedIdentity."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Handlers:
        kind = "userAssignedIdentities"
        return {
            f"{kind}.createOrUpdate": self._create,
            f"{kind}.get": lambda c: reply(200, self._parts.resources.get(c.id).content),
            f"{kind}.delete": self._delete,
            f"{kind}.listByResourceGroup": self._list,
        }

    def _create(self, context: Context) -> Answer:
        existing_group(self._parts, context)
        body, name = context.body, context["resourceName"]
        names.check_name(IDENTITY, name)
        names.check_location(IDENTITY, body["location"])
        names.check_tags(body.get("tags"))
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        if former:
            former.content["tags"] = body.get("tags") or {}
            return reply(200, former.content)
        own_id = canonical(context.id)
        directory = self._parts.directory
        principal = Principal(name, resource=own_id)
        directory.add(principal, self._parts.timing.principal_ready)
        content = {
            "id": own_id,
            "name": name,
            "type": IDENTITY,
            "location": place(body["location"]),
            "tags": body.get("tags") or {},
            "properties": {
                "tenantId": directory.tenant,
                "principalId": principal.object_id,
                "clientId": principal.client_id,
            },
        }
        made = Resource(own_id, content, inner=Identity(principal, directory))
        return reply(201, self._parts.resources.add(made).content)

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        found.inner.forget()
        self._parts.resources.remove(found)
        self._parts.roles.forget_below(found.id)
        return reply(200)

    def _list(self, context: Context) -> Answer:
        group = existing_group(self._parts, context)
        found = self._parts.resources.of_type(IDENTITY, group.id)
        return reply(200, {"value": [each.content for each in found]})
