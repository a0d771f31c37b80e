"""Microsoft.Storage: accounts and their containers. What is in containers belongs to `blobs`."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping
from typing import Any

from tests.simcloud.az import names
from tests.simcloud.az.blobstore import Account, Container
from tests.simcloud.az.parts import (
    Context,
    Handlers,
    Parts,
    canonical,
    check_same_place,
    etag,
    existing_group,
    place,
)
from tests.simcloud.az.state import Resource, not_found
from tests.simcloud.az.tls import BLOBS
from tests.simcloud.az.wire import ArmError, reply
from tests.simcloud.common.wire import Answer

ACCOUNT = "Microsoft.Storage/storageAccounts"
CONTAINER = "Microsoft.Storage/storageAccounts/blobServices/containers"
_TAG_NAME = 128


class Storage:
    """Answers for Microsoft.Storage."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.foreign: set[str] = set()  # names of accounts that somebody else has

    def handlers(self) -> Handlers:
        return {
            "storageAccounts.checkNameAvailability": self._check_name,
            "storageAccounts.create": self._create,
            "storageAccounts.update": self._update,
            "storageAccounts.getProperties": lambda c: reply(200, self._get(c).content),
            "storageAccounts.delete": self._delete,
            "storageAccounts.list": self._list,
            "storageAccounts.listByResourceGroup": self._list,
            "storageAccounts.listKeys": self._keys,
            "storageAccounts.regenerateKey": self._new_key,
            "blobContainers.create": self._create_container,
            "blobContainers.get": self._get_container,
            "blobContainers.delete": self._delete_container,
            "blobContainers.list": self._list_containers,
        }

    # Accounts

    def _check_name(self, context: Context) -> Answer:
        name = context.body["name"]
        invalid = names.check_account_name(name)
        if invalid:
            said = {"nameAvailable": False, "reason": "AccountNameInvalid", "message": invalid}
        elif name in self.foreign or self.account(name):
            text = f"The storage account named {name} is already taken."
            said = {"nameAvailable": False, "reason": "AlreadyExists", "message": text}
        else:
            said = {"nameAvailable": True}
        return reply(200, said)

    def _create(self, context: Context) -> Answer:
        existing_group(self._parts, context)
        name, body = context["accountName"], context.body
        _check(name, body)
        former = self._parts.resources.find(context.id)
        check_same_place(former, body)
        if former:
            self._check_idle(former)
            former.content["tags"] = body.get("tags") or {}
            former.properties.update(body.get("properties") or {})
            return reply(200, former.content)
        self._check_free(name)
        made = self._parts.resources.add(self._made(context, name, body))

        def finish() -> dict[str, Any]:
            made.properties["provisioningState"] = "Succeeded"
            made.inner.resolves = self._parts.clock.now() + self._parts.timing.account_ready
            return made.content

        parts = self._parts
        operation = parts.operations.begin(
            "Microsoft.Storage", made.location, context.version, parts.timing.storage, finish
        )
        made.going_on = operation.id
        return reply(202, None, parts.operations.headers(operation, "result"))

    def _made(self, context: Context, name: str, body: Mapping[str, Any]) -> Resource:
        own_id, location = canonical(context.id), place(body["location"])
        content = {
            "id": own_id,
            "name": name,
            "type": ACCOUNT,
            "location": location,
            "tags": body.get("tags") or {},
            "sku": {**body["sku"], "tier": body["sku"]["name"].partition("_")[0]},
            "kind": body["kind"],
            "properties": {
                "supportsHttpsTrafficOnly": True,
                "allowBlobPublicAccess": False,
                "allowSharedKeyAccess": True,
                "minimumTlsVersion": "TLS1_0",
                **(body.get("properties") or {}),
                "provisioningState": "Creating",
                "creationTime": self._parts.clock.today().isoformat(),
                "primaryLocation": location,
                "statusOfPrimary": "available",
                "primaryEndpoints": {"blob": f"https://{name}{BLOBS}/"},
            },
        }
        return Resource(own_id, content, inner=Account(name, own_id, [_key(), _key()]))

    def _check_free(self, name: str) -> None:
        if self.account(name):
            text = f"The storage account named {name} already exists under the subscription."
            raise ArmError(409, "StorageAccountAlreadyExists", text)
        if name in self.foreign:
            text = f"The storage account named {name} is already taken."
            raise ArmError(409, "StorageAccountAlreadyTaken", text)

    def _update(self, context: Context) -> Answer:
        found, body = self._get(context), context.body
        self._check_idle(found)
        if body.get("tags") is not None:
            names.check_tags(body["tags"], _TAG_NAME)
            found.content["tags"] = body["tags"]
        found.properties.update(body.get("properties") or {})
        return reply(200, found.content)

    def _delete(self, context: Context) -> Answer:
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        existing_group(self._parts, context)
        self._check_idle(found)
        self._parts.resources.remove(found)
        self._parts.roles.forget_below(found.id)
        return reply(200)

    def _list(self, context: Context) -> Answer:
        below = ""
        if "resourceGroupName" in context.call.parameters:
            below = existing_group(self._parts, context).id
        found = self._parts.resources.of_type(ACCOUNT, below)
        return reply(200, {"value": [each.content for each in found]})

    def _keys(self, context: Context) -> Answer:
        found = self._parts.resources.get(context.call.scope)
        return reply(200, {"keys": _told(found.inner)})

    def _new_key(self, context: Context) -> Answer:
        account = self._parts.resources.get(context.call.scope).inner
        name = context.body["keyName"]
        if name not in ("key1", "key2"):
            raise ArmError(400, "InvalidKeyName", f"There is no key {name}.")
        account.keys[int(name[3]) - 1] = _key()
        return reply(200, {"keys": _told(account)})

    # Containers

    def _create_container(self, context: Context) -> Answer:
        name = context["containerName"]
        names.check_container_name(name)
        account = self._account_of(context)
        existing_group(self._parts, context)
        found = self._parts.resources.find(context.id)
        if found:
            return reply(200, found.content)
        if account.gone.get(name, 0.0) > self._parts.clock.now():
            text = "The specified container is being deleted. Try operation later."
            raise ArmError(409, "ContainerBeingDeleted", text)
        return reply(201, self.add_container(account, name).content)

    def add_container(self, account: Account, name: str) -> Resource:
        own_id = f"{account.id}/blobServices/default/containers/{name}"
        content = {
            "id": own_id,
            "name": name,
            "type": CONTAINER,
            "etag": etag(),
            "properties": {
                "publicAccess": "None",
                "leaseStatus": "Unlocked",
                "leaseState": "Available",
                "hasImmutabilityPolicy": False,
                "hasLegalHold": False,
                "lastModifiedTime": self._parts.clock.today().isoformat(),
            },
        }
        account.containers[name] = Container(name)
        return self._parts.resources.add(Resource(own_id, content))

    def _get_container(self, context: Context) -> Answer:
        self._account_of(context)
        found = self._parts.resources.find(context.id)
        if found is None:
            raise ArmError(404, "ContainerNotFound", "The specified container does not exist.")
        return reply(200, found.content)

    def _delete_container(self, context: Context) -> Answer:
        account, name = self._account_of(context), context["containerName"]
        found = self._parts.resources.find(context.id)
        if found is None:
            return reply(204)
        self.remove_container(account, name)
        return reply(200)

    def remove_container(self, account: Account, name: str) -> None:
        own_id = f"{account.id}/blobServices/default/containers/{name}"
        self._parts.resources.remove(self._parts.resources.get(own_id))
        self._parts.roles.forget_below(own_id)
        account.containers.pop(name)
        account.gone[name] = self._parts.clock.now() + self._parts.timing.container_gone

    def _list_containers(self, context: Context) -> Answer:
        account = self._account_of(context)
        found = self._parts.resources.of_type(CONTAINER, account.id)
        return reply(200, {"value": [each.content for each in found]})

    def account(self, name: str) -> Resource | None:
        """The one of this name in any group."""
        known = self._parts.resources.of_type(ACCOUNT)
        return next((each for each in known if each.name == name), None)

    def _account_of(self, context: Context) -> Account:
        own_id = context.id.partition("/blobServices/")[0]
        found = self._parts.resources.find(own_id)
        if found is None:
            raise not_found(own_id)
        self._check_idle(found)
        account: Account = found.inner
        return account

    def _get(self, context: Context) -> Resource:
        return self._parts.resources.get(context.id)

    def _check_idle(self, resource: Resource) -> None:
        if self._parts.operations.is_going_on(resource.going_on):
            raise ArmError(
                409,
                "StorageAccountOperationInProgress",
                "An operation is currently performing on this storage account that requires "
                "exclusive access.",
            )


def _check(name: str, body: Mapping[str, Any]) -> None:
    invalid = names.check_account_name(name)
    if invalid:
        raise ArmError(400, "AccountNameInvalid", invalid)
    names.check_location(ACCOUNT, body["location"])
    names.check_tags(body.get("tags"), _TAG_NAME)
    if not body.get("sku"):
        text = "The request is invalid: values for required properties are missing. Path 'sku'."
        raise ArmError(400, "InvalidRequestPropertyValue", text)


def _told(account: Account) -> list[dict[str, str]]:
    return [
        {"keyName": f"key{number}", "value": key, "permissions": "Full"}
        for number, key in enumerate(account.keys, 1)
    ]


def _key() -> str:
    return base64.b64encode(secrets.token_bytes(64)).decode()
