"""Microsoft.Authorization: role assignments and definitions, as callers manage them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.simcloud.az import conditions, names, roles
from tests.simcloud.az.parts import Context, Handlers, Parts, canonical
from tests.simcloud.az.roles import Assignment, Role, covers
from tests.simcloud.az.state import not_found
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

_TYPE = "Microsoft.Authorization/roleAssignments"


class Authorization:
    """Answers for Microsoft.Authorization."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def handlers(self) -> Handlers:
        return {
            "roleAssignments.create": self._create,
            "roleAssignments.get": self._get,
            "roleAssignments.delete": self._delete,
            "roleAssignments.listForScope": self._list,
            "roleAssignments.listForSubscription": self._list,
            "roleDefinitions.createOrUpdate": self._define,
            "roleDefinitions.get": self._get_definition,
            "roleDefinitions.delete": self._delete_definition,
            "roleDefinitions.list": self._list_definitions,
            "permissions.listForResourceGroup": self._permissions,
            "permissions.listForResource": self._permissions,
        }

    # Assignments

    def _create(self, context: Context) -> Answer:
        name, scope = context["roleAssignmentName"], self._scope(context)
        if not names.is_guid(name):
            text = f"The role assignment ID '{name}' is not valid. It must be a GUID."
            raise ArmError(400, "InvalidRoleAssignmentId", text)
        properties = context.body["properties"]
        role = self._role(properties["roleDefinitionId"])
        if not any(covers(each, scope) for each in role.scopes):
            text = f"The role '{role.name}' cannot be assigned at the scope '{scope}'."
            raise ArmError(400, "RoleDefinitionNotAssignableAtScope", text)
        self._check_principal(properties)
        wanted = Assignment(name, scope, role.id, properties["principalId"])
        wanted.condition = _condition(properties, role)
        former = self._same(wanted)
        if former:
            former.condition = wanted.condition
            _tell_condition(former.content, properties)
            return reply(200, former.content)
        wanted.content = self._content(wanted, properties, context)
        wanted.since = self._parts.clock.now() + self._parts.timing.role_ready
        self._parts.roles.assignments.append(wanted)
        return reply(201, wanted.content)

    def _same(self, wanted: Assignment) -> Assignment | None:
        """The one that is there already, under this name; under another one it is an error."""
        for each in self._parts.roles.assignments:
            same = (each.scope.lower(), each.role, each.principal) == (
                wanted.scope.lower(),
                wanted.role,
                wanted.principal,
            )
            if each.name.lower() == wanted.name.lower() and not same:
                raise ArmError(
                    400,
                    "RoleAssignmentUpdateNotPermitted",
                    "Tenant ID, application ID, principal ID, and scope are not allowed to be "
                    "updated.",
                )
            if same and each.name.lower() != wanted.name.lower():
                raise ArmError(
                    409,
                    "RoleAssignmentExists",
                    f"The role assignment already exists. The ID of the existing role assignment "
                    f"is {each.name.replace('-', '')}.",
                )
            if same:
                return each
        return None

    def _check_principal(self, properties: dict[str, Any]) -> None:
        """Whose type is told need not be known everywhere yet."""
        directory, principal = self._parts.directory, properties["principalId"]
        kind = properties.get("principalType")
        if kind not in (None, "ServicePrincipal"):
            text = f"The PrincipalId '{principal}' has type 'ServicePrincipal', not '{kind}'."
            raise ArmError(400, "UnmatchedPrincipalType", text)
        if not (directory.exists(principal) if kind else directory.knows(principal)):
            raise ArmError(
                400,
                "PrincipalNotFound",
                f"Principal {principal.replace('-', '')} does not exist in the directory "
                f"{directory.tenant}. Check that you have the correct principal ID. If you are "
                f"creating this principal and then immediately assigning a role, this error might "
                f"be related to a replication delay. In this case, set the role assignment "
                f"principalType property to a value, such as ServicePrincipal, User, or Group.",
            )

    def _content(
        self, made: Assignment, properties: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        now = self._parts.clock.today().isoformat()
        content: dict[str, Any] = {
            "id": made.id,
            "name": made.name,
            "type": _TYPE,
            "properties": {
                "roleDefinitionId": f"{self._parts.scope}/providers/Microsoft.Authorization/"
                f"roleDefinitions/{made.role}",
                "principalId": made.principal,
                "principalType": "ServicePrincipal",
                "scope": made.scope,
                "createdOn": now,
                "updatedOn": now,
                "createdBy": context.caller.object_id,
                "updatedBy": context.caller.object_id,
                **({"description": d} if (d := properties.get("description")) else {}),
            },
        }
        _tell_condition(content, properties)
        return content

    def _get(self, context: Context) -> Answer:
        found = self._find(context)
        if found is None:
            name = context["roleAssignmentName"]
            text = f"The role assignment '{name}' is not found."
            raise ArmError(404, "RoleAssignmentNotFound", text)
        return reply(200, found.content)

    def _delete(self, context: Context) -> Answer:
        found = self._find(context)
        if found is None:
            return reply(204)
        self._parts.roles.end(found, self._parts.timing.role_gone)
        return reply(200, found.content)

    def _list(self, context: Context) -> Answer:
        text = context.request.parameters.get("$filter", "")
        who = re.search(r"principalId eq '([^']+)'|assignedTo\('([^']+)'\)", text)
        if text and not who and text != "atScope()":
            raise ArmError(400, "BadRequestFormat", f"The filter '{text}' is not supported.")
        asked = self._scope(context) if "scope" in context.call.parameters else self._parts.scope
        found = []
        for each in self._parts.roles.assignments:
            above = covers(each.scope, asked)
            if not (above or (text != "atScope()" and covers(asked, each.scope))):
                continue
            if who is None or each.principal == (who[1] or who[2]):
                found.append(each.content)
        return reply(200, {"value": found})

    def _find(self, context: Context) -> Assignment | None:
        key = (context["roleAssignmentName"].lower(), self._scope(context, False).lower())
        known = self._parts.roles.assignments
        return next((e for e in known if (e.name.lower(), e.scope.lower()) == key), None)

    # Definitions

    def _define(self, context: Context) -> Answer:
        name, properties = context["roleDefinitionId"], context.body.get("properties") or {}
        if not names.is_guid(name):
            raise ArmError(400, "InvalidRoleDefinitionId", f"The ID '{name}' is not a GUID.")
        if not properties.get("roleName") or not properties.get("assignableScopes"):
            text = "The role definition needs a name and assignable scopes."
            raise ArmError(400, "InvalidRoleDefinition", text)
        role = roles.from_properties(name.lower(), properties)
        for scope in role.scopes:
            if "/providers/" in scope.lower() or not covers(self._parts.scope, scope):
                text = f"The assignable scope '{scope}' is not a subscription or resource group."
                raise ArmError(400, "InvalidRoleDefinitionScope", text)
        known = self._parts.roles.definitions
        if any(each.name == role.name and each.id != role.id for each in known.values()):
            text = f"A custom role already exists in this directory with the name '{role.name}'."
            raise ArmError(409, "RoleDefinitionWithSameNameExists", text)
        known[role.id] = role
        return reply(201, self._definition(role))

    def _get_definition(self, context: Context) -> Answer:
        return reply(200, self._definition(self._role(context["roleDefinitionId"])))

    def _delete_definition(self, context: Context) -> Answer:
        known = self._parts.roles.definitions
        role = known.get(context["roleDefinitionId"].lower())
        if role is None:
            return reply(204)
        if not role.custom or any(e.role == role.id for e in self._parts.roles.assignments):
            text = "There are existing role assignments referencing the role."
            raise ArmError(400, "RoleDefinitionHasAssignments", text)
        del known[role.id]
        return reply(200, self._definition(role))

    def _list_definitions(self, context: Context) -> Answer:
        text = context.request.parameters.get("$filter", "")
        name = re.search("roleName eq '([^']+)'", text)
        kind = re.search("type eq '([^']+)'", text)
        scope = self._scope(context)
        found = [
            self._definition(each)
            for each in self._parts.roles.definitions.values()
            if any(covers(s, scope) or covers(scope, s) for s in each.scopes)
            and (name is None or each.name == name[1])
            and (kind is None or (kind[1] == "CustomRole") == each.custom)
        ]
        return reply(200, {"value": found})

    def _permissions(self, context: Context) -> Answer:
        scope = re.sub("(?i)/providers/Microsoft.Authorization/permissions$", "", context.id)
        found = [
            {
                "actions": list(each.actions),
                "notActions": list(each.not_actions),
                "dataActions": list(each.data_actions),
                "notDataActions": list(each.not_data_actions),
            }
            for each in self._parts.roles.of(context.caller.object_id, scope)
        ]
        return reply(200, {"value": found})

    def _definition(self, role: Role) -> dict[str, Any]:
        kind = "Microsoft.Authorization/roleDefinitions"
        return {
            "id": f"{self._parts.scope}/providers/{kind}/{role.id}",
            "name": role.id,
            "type": kind,
            "properties": {
                "roleName": role.name,
                "type": "CustomRole" if role.custom else "BuiltInRole",
                "description": role.description,
                "assignableScopes": list(role.scopes),
                "permissions": [
                    {
                        "actions": list(role.actions),
                        "notActions": list(role.not_actions),
                        "dataActions": list(role.data_actions),
                        "notDataActions": list(role.not_data_actions),
                    }
                ],
            },
        }

    def _role(self, id: str) -> Role:
        found = self._parts.roles.definitions.get(id.rpartition("/")[2].lower())
        if found is None:
            text = f"The specified role definition with ID '{id}' does not exist."
            raise ArmError(404, "RoleDefinitionDoesNotExist", text)
        return found

    def _scope(self, context: Context, must_exist: bool = True) -> str:
        scope = canonical("/" + context["scope"].strip("/"))
        whole = scope.lower() == self._parts.scope.lower()
        if must_exist and not whole and self._parts.resources.find(scope) is None:
            raise not_found(scope)
        return scope


def _condition(properties: dict[str, Any], role: Role) -> Callable[[conditions.Asked], bool] | None:
    """A condition needs its version, and a role that allows something on data."""
    text, version = properties.get("condition"), properties.get("conditionVersion")
    if not text:
        return None
    if version != conditions.VERSION:
        text = f"The condition version '{version}' is not valid: it must be '{conditions.VERSION}'."
        raise ArmError(400, "InvalidConditionVersion", text)
    if not role.data_actions:
        text = f"The role '{role.name}' does not support conditions."
        raise ArmError(400, "ConditionNotSupported", text)
    return conditions.parse(text)


def _tell_condition(content: dict[str, Any], properties: dict[str, Any]) -> None:
    for name in ("condition", "conditionVersion"):
        content["properties"].pop(name, None)
        if properties.get(name):
            content["properties"][name] = properties[name]
