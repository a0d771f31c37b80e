"""A user of the simulated Azure: short ways to make what tests need, with httpx and azure-identity.

It follows operations as a careful client does. What is tested does not belong here.
"""

from __future__ import annotations

import base64
import ssl
import time
import uuid
from collections.abc import Mapping
from typing import Any

import httpx
from azure.identity import ClientSecretCredential
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from obstore.store import AzureStore

from tests.support.waiting import patience

VERSIONS = {
    "microsoft.authorization": "2022-04-01",
    "microsoft.compute": "2024-11-01",
    "microsoft.compute/skus": "2021-07-01",
    "microsoft.insights": "2015-04-01",
    "microsoft.managedidentity": "2024-11-30",
    "microsoft.marketplaceordering": "2021-01-01",
    "microsoft.network": "2025-05-01",
    "microsoft.storage": "2024-01-01",
    "": "2025-04-01",
}
UBUNTU = {
    "publisher": "Canonical",
    "offer": "ubuntu-24_04-lts",
    "sku": "server",
    "version": "latest",
}
BLOB_CONTRIBUTOR = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"
MACHINE_CONTRIBUTOR = "9980e02c-c2be-4d73-94e8-173b1dc7cf3c"
CONTRIBUTOR = "b24988ac-6180-42a0-ab88-20f7382dd24c"
_ARM = "https://management.azure.com"


class User:
    """Who has these variables."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.subscription = environment["AZURE_SUBSCRIPTION_ID"]
        self.credential = ClientSecretCredential(
            environment["AZURE_TENANT_ID"],
            environment["AZURE_CLIENT_ID"],
            environment["AZURE_CLIENT_SECRET"],
            proxies={"https": environment["HTTPS_PROXY"]},
            connection_verify=environment["REQUESTS_CA_BUNDLE"],
        )
        self.http = httpx.Client(
            proxy=environment["HTTPS_PROXY"],
            verify=ssl.create_default_context(cafile=environment["SSL_CERT_FILE"]),
            trust_env=False,
        )

    def close(self) -> None:
        self.http.close()
        self.credential.close()

    # Calls

    def call(
        self, method: str, path: str, body: Any = None, *, version: str = "", **query: str
    ) -> httpx.Response:
        """One call; `path` is below the subscription unless it begins with a slash."""
        if not path.startswith("/"):
            path = f"/subscriptions/{self.subscription}/{path}".rstrip("/")
        token = self.credential.get_token(f"{_ARM}/.default").token
        return self.http.request(
            method,
            f"{_ARM}{path}",
            params={"api-version": version or _version(path), **query},
            json=body,
            headers={"Authorization": f"Bearer {token}"},
        )

    def get(self, path: str, **query: str) -> Any:
        return _good(self.call("GET", path, **query)).json()

    def put(self, path: str, body: Any) -> Any:
        """Make or change something, and wait until that is done."""
        return self.finish(_good(self.call("PUT", path, body)))

    def delete(self, path: str) -> None:
        self.finish(_good(self.call("DELETE", path)))

    def finish(self, answer: httpx.Response) -> Any:
        """Follow an operation to its end; what it made, or an error."""
        status, result = (answer.headers.get(n) for n in ("azure-asyncoperation", "location"))
        give_up = time.monotonic() + patience(30)
        while status or (result and answer.status_code == 202):
            assert time.monotonic() < give_up, "the operation does not end"
            time.sleep(0.02)
            polled = self.poll(status or result)
            if not status:
                answer = _good(polled)
            elif polled.json()["status"] != "InProgress":
                if polled.json()["status"] != "Succeeded":
                    raise RefusedError(polled.status_code, polled.json()["error"])
                break
        if status and answer.request.method == "PUT":
            return _good(self.http.get(answer.request.url, headers=self._bearer())).json()
        return answer.json() if answer.content else None

    def poll(self, url: str) -> httpx.Response:
        return _good(self.http.get(url, headers=self._bearer()))

    def _bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.credential.get_token(f'{_ARM}/.default').token}"}

    # Things

    def make_group(self, name: str = "a-group", **tags: str) -> str:
        path = f"resourceGroups/{name}"
        return str(self.put(path, {"location": "eastus", "tags": tags})["id"])

    def make_network(self, group: str) -> str:
        """The id of a subnet that lets SSH in."""
        rule = {
            "priority": 100,
            "direction": "Inbound",
            "access": "Allow",
            "protocol": "Tcp",
            "sourceAddressPrefix": "*",
            "sourcePortRange": "*",
            "destinationAddressPrefix": "*",
            "destinationPortRange": "22",
        }
        firewall = self.put(
            f"{group}/providers/Microsoft.Network/networkSecurityGroups/a-firewall",
            {
                "location": "eastus",
                "properties": {"securityRules": [{"name": "ssh", "properties": rule}]},
            },
        )
        subnet = {
            "addressPrefix": "10.0.0.0/16",
            "networkSecurityGroup": {"id": firewall["id"]},
        }
        network = self.put(
            f"{group}/providers/Microsoft.Network/virtualNetworks/a-network",
            {
                "location": "eastus",
                "properties": {
                    "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
                    "subnets": [{"name": "a-subnet", "properties": subnet}],
                },
            },
        )
        return str(network["properties"]["subnets"][0]["id"])

    def make_identity(self, group: str, name: str = "an-identity") -> Any:
        path = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        return self.put(path, {"location": "eastus"})

    def make_container(self, group: str, account: str = "anaccount", name: str = "box") -> str:
        path = f"{group}/providers/Microsoft.Storage/storageAccounts/{account}"
        self.put(
            path,
            {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"},
        )
        inside = f"{path}/blobServices/default/containers/{name}"
        return str(self.put(inside, {})["id"])

    def assign(self, scope: str, role: str, principal: str) -> Any:
        roles = f"/subscriptions/{self.subscription}/providers/Microsoft.Authorization"
        path = f"{scope}/providers/Microsoft.Authorization/roleAssignments/{uuid.uuid4()}"
        properties = {
            "roleDefinitionId": f"{roles}/roleDefinitions/{role}",
            "principalId": principal,
            "principalType": "ServicePrincipal",
        }
        return self.put(path, {"properties": properties})

    def make_set(self, group: str, capacity: int = 1, *, name: str = "a-set", **more: Any) -> Any:
        body = scale_set(more.pop("subnet", None) or self.make_network(group), capacity, **more)
        return self.put(f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}", body)

    def machines(self, scale_set: str) -> list[Any]:
        found = self.get(f"{scale_set}/virtualMachines", **{"$expand": "instanceView"})
        return list(found["value"])

    def store(self, account: str = "anaccount", container: str = "box") -> AzureStore:
        """By a token; how to get to it is told by the variables of the process."""
        token = self.credential.get_token("https://storage.azure.com/.default").token
        return AzureStore(container, account_name=account, bearer_token=token)


class RefusedError(Exception):
    """What Azure did not do."""

    def __init__(self, status: int, error: Mapping[str, Any]) -> None:
        super().__init__(f"{status} {error}")
        self.status = status
        self.code = error["code"]
        self.message = error["message"]


def scale_set(
    subnet: str,
    capacity: int,
    *,
    script: bytes = b"#!/bin/sh\n",
    spot: str = "",
    identity: str = "",
    size: str = "Standard_D2s_v5",
    key: str = "",
    properties: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A scale set of the simplest kind; `spot` is the eviction policy, `key` who may log in."""
    if not key:
        public = ed25519.Ed25519PrivateKey.generate().public_key()
        key = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    where = {"path": "/home/someone/.ssh/authorized_keys", "keyData": key}
    card = {
        "primary": True,
        "ipConfigurations": [
            {
                "name": "first",
                "properties": {
                    "subnet": {"id": subnet},
                    "publicIPAddressConfiguration": {"name": "public"},
                },
            }
        ],
    }
    machine: dict[str, Any] = {
        "osProfile": {
            "computerNamePrefix": "a-set",
            "adminUsername": "someone",
            "customData": base64.b64encode(script).decode(),
            "linuxConfiguration": {
                "disablePasswordAuthentication": True,
                "ssh": {"publicKeys": [where]},
            },
        },
        "storageProfile": {"imageReference": {**UBUNTU}, "osDisk": {"createOption": "FromImage"}},
        "networkProfile": {
            "networkInterfaceConfigurations": [{"name": "card", "properties": card}]
        },
    }
    if spot:
        machine |= {"priority": "Spot", "evictionPolicy": spot, "billingProfile": {"maxPrice": -1}}
    body: dict[str, Any] = {
        "location": "eastus",
        "sku": {"name": size, "capacity": capacity},
        "properties": {
            "upgradePolicy": {"mode": "Manual"},
            "orchestrationMode": "Uniform",
            "overprovision": False,
            "singlePlacementGroup": False,
            "virtualMachineProfile": machine,
            **(properties or {}),
        },
    }
    if identity:
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}
    return body


def states(user: User, scale_set: str) -> dict[str, str]:
    """The last word on each instance of a scale set."""
    return {
        each["instanceId"]: each["properties"]["instanceView"]["statuses"][-1]["code"]
        for each in user.machines(scale_set)
    }


def resize(user: User, scale_set: str, number: int) -> Any:
    answer = user.call("PATCH", scale_set, {"sku": {"capacity": number}})
    assert answer.status_code == 200, answer.text
    return user.finish(answer)


def capacity(user: User, scale_set: str) -> int:
    return int(user.get(scale_set)["sku"]["capacity"])


def refused(code: str, answer: httpx.Response) -> str:
    """The message of a refusal, which has this code."""
    assert answer.status_code >= 400, answer.text
    error = answer.json()["error"]
    assert error["code"] == code, error
    return str(error["message"])


def _good(answer: httpx.Response) -> httpx.Response:
    if answer.status_code >= 400:
        raise RefusedError(answer.status_code, answer.json()["error"])
    return answer


def _version(path: str) -> str:
    _, mark, rest = path.lower().rpartition("/providers/")
    namespace, _, kind = rest.partition("/")
    if not mark or kind in ("", "register"):
        return VERSIONS[""]
    if kind == "skus":
        return VERSIONS["microsoft.compute/skus"]
    if kind.endswith(("/publicipaddresses", "/networkinterfaces")):
        return "2018-10-01"
    return VERSIONS.get(namespace, VERSIONS[""])
