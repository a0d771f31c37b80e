"""Resource groups, lists of what is in them, providers, and the subscription itself.

How a kind of resource ends with its group belongs to its provider: `end`, `ended` and `forget` of
what it keeps beside the content, if it has them.
"""

from __future__ import annotations

from typing import Any

from tests.simcloud.az import names
from tests.simcloud.az.filters import paged, tagged, terms
from tests.simcloud.az.parts import Context, Handlers, Parts, place
from tests.simcloud.az.state import Resource, not_found
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

GROUP = "Microsoft.Resources/resourceGroups"
PROVIDERS = (
    "Microsoft.Compute",
    "Microsoft.Insights",
    "Microsoft.ManagedIdentity",
    "Microsoft.Network",
    "Microsoft.Storage",
)
_LISTED = ("id", "name", "type", "location", "tags", "sku", "identity", "kind", "zones", "plan")
_OF_RESOURCES = ("resourceType", "tagName", "tagValue", "name", "resourceGroup", "location")


class Groups:
    """Answers for Microsoft.Resources."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._busy: dict[str, str] = {}  # providers that are being registered

    def handlers(self) -> Handlers:
        return {
            "resourceGroups.createOrUpdate": self._create,
            "resourceGroups.update": self._update,
            "resourceGroups.get": lambda c: reply(200, self._find(c).content),
            "resourceGroups.checkExistence": self._check,
            "resourceGroups.delete": self._delete,
            "resourceGroups.list": self._list,
            "resources.list": self._resources,
            "resources.listByResourceGroup": self._resources,
            "providers.get": self._provider,
            "providers.list": self._list_providers,
            "providers.register": self._register,
            "tagsOperations.updateAtScope": self._change_tags,
            "subscriptions.get": self._subscription,
            "subscriptions.listLocations": self._locations,
            "operations.status": lambda c: self._parts.operations.tell_status(c.call.parameters),
            "operations.result": lambda c: self._parts.operations.tell_result(c.call.parameters),
            "operations.groupResult": lambda c: self._result(c),
        }

    # Groups

    def _create(self, context: Context) -> Answer:
        name, body = context["resourceGroupName"], context.body
        names.check_name(GROUP, name)
        names.check_location(GROUP, body["location"])
        names.check_tags(body.get("tags"))
        own_id = f"{self._parts.scope}/resourceGroups/{name}"
        former = self._parts.resources.find(own_id)
        if former is None:
            content = {
                "id": own_id,
                "name": name,
                "type": GROUP,
                "location": place(body["location"]),
                "tags": body.get("tags") or {},
                "properties": {"provisioningState": "Succeeded"},
            }
            return reply(201, self._parts.resources.add(Resource(own_id, content)).content)
        self._check_usable(former)
        if place(body["location"]) != former.location:
            raise ArmError(
                409,
                "InvalidResourceGroupLocation",
                f"Invalid resource group location '{body['location']}'. The Resource group "
                f"already exists in location '{former.location}'.",
            )
        former.content["tags"] = body.get("tags") or {}
        return reply(200, former.content)

    def _update(self, context: Context) -> Answer:
        group = self._find(context)
        self._check_usable(group)
        if context.body.get("tags") is not None:
            names.check_tags(context.body["tags"])
            group.content["tags"] = context.body["tags"]
        return reply(200, group.content)

    def _check(self, context: Context) -> Answer:
        there = self._parts.resources.find(self._id(context))
        return reply(204 if there else 404)

    def _delete(self, context: Context) -> Answer:
        parts, group = self._parts, self._find(context)
        if not group.deleting:
            group.deleting = True
            group.properties["provisioningState"] = "Deleting"
            for each in parts.resources.below(group.id):
                each.deleting = True
                if hasattr(each.inner, "end"):
                    each.inner.end()

        def ready() -> bool:
            inside = parts.resources.below(group.id)
            return all(getattr(each.inner, "ended", True) for each in inside)

        operation = parts.operations.begin(
            "", "", context.version, parts.timing.group_gone, lambda: self._gone(group), ready
        )
        return reply(202, None, parts.operations.headers(operation, "result"))

    def _gone(self, group: Resource) -> None:
        for each in self._parts.resources.below(group.id):
            if hasattr(each.inner, "forget"):
                each.inner.forget()
        self._parts.resources.remove(group)
        self._parts.roles.forget_below(group.id)

    def _result(self, context: Context) -> Answer:
        answer = self._parts.operations.tell_result(context.call.parameters)
        return reply(200) if answer.status == 204 else answer

    def _list(self, context: Context) -> Answer:
        asked = terms(context.request.parameters.get("$filter", ""), ("tagName", "tagValue"))
        found = [
            each.content
            for each in self._parts.resources.of_type(GROUP)
            if tagged(each.tags, asked)
            and self._parts.resources.is_listed(each)
            and self._may(context, "Microsoft.Resources/subscriptions/resourceGroups/read", each)
        ]
        return paged(context, found)

    # What is in them

    def _resources(self, context: Context) -> Answer:
        asked = terms(context.request.parameters.get("$filter", ""), _OF_RESOURCES)
        if "tagName" in asked and asked.keys() - {"tagName", "tagValue"}:
            text = "Filters by tag cannot be combined with others."
            raise ArmError(400, "InvalidFilterInQueryString", text)
        below = self._find(context).id if "resourceGroupName" in context.call.parameters else ""
        inside = self._parts.resources.below(below) if below else iter(self._parts.resources)
        found = [
            {key: value for key, value in each.content.items() if key in _LISTED}
            for each in inside
            if each.type != GROUP
            and self._parts.resources.is_listed(each)
            and "location" in each.content  # else it is a part of another resource
            and tagged(each.tags, asked)
            and asked.get("resourceType", each.type).lower() == each.type.lower()
            and asked.get("name", each.name).lower() == each.name.lower()
            and asked.get("location", each.location) == each.location
            and asked.get("resourceGroup", each.id.split("/")[4]).lower()
            == each.id.split("/")[4].lower()
            and self._may(context, f"{each.type}/read", each)
        ]
        return paged(context, found)

    def _may(self, context: Context, action: str, resource: Resource) -> bool:
        return self._parts.roles.may(context.caller.object_id, action, resource.id)

    # Tags of anything

    def _change_tags(self, context: Context) -> Answer:
        """One by one: what is not named stays, unless it says Replace."""
        found = self._parts.resources.get("/" + context["scope"].strip("/"))
        if "location" not in found.content:
            raise ArmError(400, "TagsNotSupported", f"{found.id} cannot have tags.")
        existing = self._parts.resources.find("/".join(found.id.split("/")[:5]))
        if existing:
            self._check_usable(existing)
        given = (context.body.get("properties") or {}).get("tags") or {}
        operation = context.body.get("operation")
        tags = {} if operation == "Replace" else found.tags
        for name in given:
            tags = {key: v for key, v in tags.items() if key.lower() != name.lower()}
        if operation != "Delete":
            tags |= given
        names.check_tags(tags)
        found.content["tags"] = tags
        if isinstance(getattr(found.inner, "given", None), dict):
            found.inner.given["tags"] = dict(tags)  # a change of the rest leaves them
        own_id = f"{found.id}/providers/Microsoft.Resources/tags/default"
        said = {"id": own_id, "name": "default", "type": "Microsoft.Resources/tags"}
        return reply(200, {**said, "properties": {"tags": tags}})

    # Providers and the subscription

    def _provider(self, context: Context) -> Answer:
        return reply(200, self._of_provider(context["resourceProviderNamespace"]))

    def _list_providers(self, context: Context) -> Answer:
        return reply(200, {"value": [self._of_provider(each) for each in PROVIDERS]})

    def _register(self, context: Context) -> Answer:
        name = context["resourceProviderNamespace"]
        said = self._of_provider(name)
        if said["registrationState"] == "NotRegistered":
            self._busy[name.lower()] = "Registering"

            def finish() -> None:
                self._busy.pop(name.lower(), None)
                self._parts.registered.add(name.lower())

            self._parts.schedule.after(self._parts.timing.registration, finish)
            said = self._of_provider(name)
        return reply(200, said)

    def _of_provider(self, name: str) -> dict[str, Any]:
        known = next((each for each in PROVIDERS if each.lower() == name.lower()), None)
        if known is None:
            text = f"The resource namespace '{name}' is invalid."
            raise ArmError(404, "InvalidResourceNamespace", text)
        there = known.lower() in self._parts.registered
        state = "Registered" if there else self._busy.get(known.lower(), "NotRegistered")
        return {
            "id": f"{self._parts.scope}/providers/{known}",
            "namespace": known,
            "registrationState": state,
            "registrationPolicy": "RegistrationRequired",
            "resourceTypes": [],
        }

    def _subscription(self, context: Context) -> Answer:
        said = {
            "id": self._parts.scope,
            "subscriptionId": self._parts.subscription,
            "tenantId": self._parts.directory.tenant,
            "displayName": "Simulated",
            "state": "Enabled",
        }
        return reply(200, said)

    def _locations(self, context: Context) -> Answer:
        scope = self._parts.scope
        found = [{"id": f"{scope}/locations/{each}", "name": each} for each in names.LOCATIONS]
        return reply(200, {"value": found})

    def _id(self, context: Context) -> str:
        return f"{self._parts.scope}/resourceGroups/{context['resourceGroupName']}"

    def _find(self, context: Context) -> Resource:
        found = self._parts.resources.find(self._id(context))
        if found is None:
            raise not_found(self._id(context))
        return found

    def _check_usable(self, group: Resource) -> None:
        if group.deleting:
            raise ArmError(
                409,
                "ResourceGroupBeingDeleted",
                f"The resource group '{group.name}' is in deprovisioning state and cannot "
                f"perform this operation.",
            )
