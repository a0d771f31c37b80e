"""A user of a simulated Google Cloud project, with short names for what tests do often."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import httpx
import obstore
import pytest
from google.auth.transport.requests import Request
from google.oauth2.service_account import Credentials
from obstore.store import GCSStore

from tests.simcloud.gcp.project import PROJECT

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ZONE = "us-west1-b"
UBUNTU = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
_JSON = Mapping[str, Any]


class GoogleError(Exception):
    """A call was refused."""

    def __init__(self, status: int, body: Any) -> None:
        error = body.get("error", {}) if isinstance(body, dict) else {}
        super().__init__(f"{status}: {error.get('message') if isinstance(error, dict) else body}")
        self.status = status
        self.error = error

    @property
    def reason(self) -> str:
        errors = self.error.get("errors")
        return str(errors[0]["reason"] if errors else self.error.get("status"))


class User:
    """Talks to all services with the key of its environment, by google-auth."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.endpoint = environment["SOJOURN_GCP_ENDPOINT"]
        path = environment["GOOGLE_APPLICATION_CREDENTIALS"]
        made: Any = Credentials
        self.credentials = made.from_service_account_file(path, scopes=[SCOPE])
        self._client = httpx.Client(timeout=30, trust_env=False)
        self._token = ""

    def close(self) -> None:
        self._client.close()

    def token(self) -> str:
        if not self._token:
            request = Request()
            request.session.trust_env = False
            self.credentials.refresh(request)
            request.session.close()
            self._token = str(self.credentials.token)
        return self._token

    def call(
        self, verb: str, host: str, path: str, body: Any = None, **query: Any
    ) -> dict[str, Any]:
        """One call; an error is a GoogleError."""
        response = self._client.request(
            verb,
            f"{self.endpoint}/{host}.googleapis.com/{path}",
            params=query or None,
            headers={"Authorization": f"Bearer {self.token()}"},
            json=body,
        )
        if response.status_code >= 400:
            raise GoogleError(response.status_code, response.json())
        found: dict[str, Any] = json.loads(response.content) if response.content else {}
        return found

    # Compute Engine

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self.call("GET", "compute", f"compute/v1/projects/{PROJECT}/{path}", **query)

    def post(self, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        """Ask for something and wait for it."""
        return self.finished(self.begin(path, body, **query))

    def begin(self, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        full = f"compute/v1/projects/{PROJECT}/{path}"
        return self.call("POST", "compute", full, body, **query)

    def delete(self, path: str, **query: Any) -> dict[str, Any]:
        full = f"compute/v1/projects/{PROJECT}/{path}"
        return self.finished(self.call("DELETE", "compute", full, **query))

    def finished(self, operation: dict[str, Any]) -> dict[str, Any]:
        path = operation["selfLink"].partition(f"/projects/{PROJECT}/")[2]
        while operation["status"] != "DONE":
            operation = self.begin(f"{path}/wait")
        return operation

    def make_template(
        self, script: str = "", name: str = "a-template", *, spot: bool = False, **more: Any
    ) -> dict[str, Any]:
        return self.post(
            "global/instanceTemplates",
            {"name": name, "properties": {**properties(script, spot=spot), **more}},
        )

    def make_group(self, size: int = 0, name: str = "a-group", **more: Any) -> dict[str, Any]:
        body = {
            "name": name,
            "baseInstanceName": "machine",
            "instanceTemplate": f"projects/{PROJECT}/global/instanceTemplates/a-template",
            "targetSize": size,
            **more,
        }
        return self.post(f"zones/{ZONE}/instanceGroupManagers", body)

    def group(self, name: str = "a-group") -> dict[str, Any]:
        return self.get(f"zones/{ZONE}/instanceGroupManagers/{name}")

    def resize(self, size: int, name: str = "a-group") -> None:
        self.post(f"zones/{ZONE}/instanceGroupManagers/{name}/resize", size=size)

    def members(self, name: str = "a-group") -> list[dict[str, Any]]:
        path = f"zones/{ZONE}/instanceGroupManagers/{name}/listManagedInstances"
        found: list[dict[str, Any]] = self.begin(path).get("managedInstances", [])
        return found

    def errors(self, name: str = "a-group") -> list[dict[str, Any]]:
        path = f"zones/{ZONE}/instanceGroupManagers/{name}/listErrors"
        found: list[dict[str, Any]] = self.get(path).get("items", [])
        return found

    def remove_all(self) -> None:
        self.delete(f"zones/{ZONE}/instanceGroupManagers/a-group")
        self.delete("global/instanceTemplates/a-template")

    # Service accounts and policies

    def make_account(self, name: str = "a-machine") -> str:
        body = {"accountId": name, "serviceAccount": {"displayName": "A machine"}}
        made = self.call("POST", "iam", f"v1/projects/{PROJECT}/serviceAccounts", body)
        return str(made["email"])

    def remove_account(self, email: str) -> None:
        self.call("DELETE", "iam", f"v1/projects/{PROJECT}/serviceAccounts/{email}")

    def policy(self) -> dict[str, Any]:
        path = f"v1/projects/{PROJECT}:getIamPolicy"
        body = {"options": {"requestedPolicyVersion": 3}}
        return self.call("POST", "cloudresourcemanager", path, body)

    def set_policy(self, policy: _JSON) -> dict[str, Any]:
        path = f"v1/projects/{PROJECT}:setIamPolicy"
        return self.call("POST", "cloudresourcemanager", path, {"policy": policy})

    def bind(self, role: str, member: str, condition: str = "") -> None:
        policy = self.policy()
        binding: dict[str, Any] = {"role": role, "members": [member]}
        if condition:
            binding["condition"] = {"title": "only", "expression": condition}
        self.set_policy({**policy, "version": 3, "bindings": [*policy["bindings"], binding]})

    def unbind(self, member: str) -> None:
        policy = self.policy()
        bindings = [
            {**each, "members": [name for name in each["members"] if member not in name]}
            for each in policy["bindings"]
        ]
        kept = [each for each in bindings if each["members"]]
        self.set_policy({**policy, "version": 3, "bindings": kept})

    # Cloud Storage

    def make_bucket(self, name: str = "a-bucket", **more: Any) -> dict[str, Any]:
        body = {
            "name": name,
            "location": "us-west1",
            "iamConfiguration": {
                "uniformBucketLevelAccess": {"enabled": True},
                "publicAccessPrevention": "enforced",
            },
            "softDeletePolicy": {"retentionDurationSeconds": "0"},
            **more,
        }
        return self.call("POST", "storage", "storage/v1/b", body, project=PROJECT)

    def store(self, bucket: str = "a-bucket") -> GCSStore:
        return store(self.endpoint, bucket, self.token())

    def remove_bucket(self, name: str = "a-bucket") -> None:
        bucket = self.store(name)
        obstore.delete(bucket, [each["path"] for each in obstore.list(bucket).collect()])
        self.call("DELETE", "storage", f"storage/v1/b/{name}")


def store(endpoint: str, bucket: str, token: str) -> GCSStore:
    """object_store's own client."""
    return GCSStore(
        bucket,
        config={
            "base_url": f"{endpoint}/storage.googleapis.com",
            "bearer_token": token,
        },
        client_options={"allow_http": True},
        retry_config={"max_retries": 0},
    )


def properties(script: str = "", *, spot: bool = False) -> dict[str, Any]:
    """Of an instance."""
    disk = {"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": UBUNTU}}
    interface = {
        "network": "global/networks/default",
        "accessConfigs": [{"type": "ONE_TO_ONE_NAT", "name": "External NAT"}],
    }
    found: dict[str, Any] = {
        "machineType": "e2-standard-2",
        "disks": [disk],
        "networkInterfaces": [interface],
    }
    if script:
        found["metadata"] = {"items": [{"key": "startup-script", "value": script}]}
    if spot:
        found["scheduling"] = {"provisioningModel": "SPOT", "automaticRestart": False}
    return found


def refused(status: int, reason: str, call: Any, *arguments: Any, **named: Any) -> str:
    """Make a call that is to be refused for this reason; returns the message."""
    with pytest.raises(GoogleError) as caught:
        call(*arguments, **named)
    assert (caught.value.status, caught.value.reason) == (status, reason), str(caught.value)
    return str(caught.value.error["message"])


def request_id() -> str:
    return str(uuid.uuid4())
