"""Google Cloud, for tests with machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import obstore
from obstore.exceptions import PermissionDeniedError

from sojourn.clouds.gcp.resources import address_of
from tests.contract.clouds.gcp_kit import GcpKit
from tests.simcloud.gcp_user import ZONE, User, refused, store
from tests.simcloud.machines.running import RunningMachine

TOKEN = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"
OTHER = "tpi-other"
_FORBIDDEN = (403, "forbidden")


class GcpSide:
    notice = "Powering off"  # the notice is a shutdown
    warning = "will stop this machine for maintenance"
    fetched = "storage:objects.get"
    listed = "storage:objects.list"
    machines = "tpi-*"
    denied = {"code": "forbidden", "status": 403}  # noqa: RUF012
    default_type = "e2-custom-8-32768"
    late = "HTTP Error 403"

    def __init__(self, kit: GcpKit) -> None:
        self.kit = kit
        self.account = kit.account

    def warn(self, instance: Any) -> None:
        self.account.announce_maintenance(instance.id)

    def wanted(self) -> list[int]:
        return [group.target for group in self.account._scaler.groups.values()]

    def shared_network(self) -> AbstractContextManager[dict[str, Any]]:
        return nullcontext({})

    def make_bucket(self, name: str) -> None:
        self._as_user(lambda user: user.make_bucket(name, location="europe-north1"))

    def remove_bucket(self, name: str) -> None:
        self._as_user(lambda user: user.remove_bucket(name))

    def objects(self, bucket: str) -> Mapping[str, bytes]:
        found = self.account.buckets.all[bucket].objects
        return {name: item.data for name, item in list(found.items())}

    def paths(self, bucket: str) -> list[str]:
        return list(self.account.buckets.all[bucket].objects)

    def put(self, bucket: str, path: str, content: bytes) -> None:
        self._as_user(lambda user: user.store(bucket).put(path, content))

    def remove(self, bucket: str, path: str) -> None:
        self._as_user(lambda user: user.store(bucket).delete(path))

    def no_keys(self, seconds: float) -> None:
        """Tokens come at once, and are good for nothing yet."""
        self.account.timing.policy_ready = seconds

    def keys_at_last(self, seconds: float) -> None:
        self.account.advance(seconds)

    def secrets(self) -> list[str]:
        path = self.kit.environment()["GOOGLE_APPLICATION_CREDENTIALS"]
        key = json.loads(Path(path).read_text())
        middle = key["private_key"].splitlines()[3]
        return [middle, key["private_key_id"]]

    def in_account(self, name: str) -> Iterator[Any]:
        user = User(self.kit.environment())
        email = address_of(name, self.account.project_id)
        yield user.call("GET", "storage", f"storage/v1/b/{name}")
        iam = f"storage/v1/b/{name}/iam"
        yield user.call("GET", "storage", iam, optionsRequestedPolicyVersion=3)
        yield user.policy()
        yield user.call("GET", "iam", f"v1/projects/-/serviceAccounts/{email}")
        yield user.get(f"global/firewalls/{name}")
        yield user.group(name)
        yield user.get(f"zones/{ZONE}/instances")
        template = user.get(f"global/instanceTemplates/{name}")
        yield template
        given = {each["key"]: each["value"] for each in template["properties"]["metadata"]["items"]}
        yield given["startup-script"].encode()
        user.close()

    def check_rights(self, machine: RunningMachine, name: str) -> None:
        user = User(self.kit.environment())
        user.make_bucket(OTHER)
        user.store(OTHER).put("task.json", b"")
        user.make_group(0, OTHER, instanceTemplate=_template(self.account.project_id, name))
        theirs = machine.run("curl", "-sf", "-H", "Metadata-Flavor: Google", TOKEN).stdout
        role = User(self.kit.environment())
        role._token = json.loads(theirs)["access_token"]
        try:
            _check_store(role, name)
            _check_project(role, name)
            _check_groups(role, name)
        finally:
            role.close()
            user.delete(f"zones/{ZONE}/instanceGroupManagers/{OTHER}")
            user.remove_bucket(OTHER)
            user.close()

    def _as_user(self, do: Any) -> None:
        user = User(self.kit.environment())
        try:
            do(user)
        finally:
            user.close()


def make(kit: GcpKit) -> GcpSide:
    return GcpSide(kit)


def _template(project: str, name: str) -> str:
    return f"projects/{project}/global/instanceTemplates/{name}"


def _check_store(role: User, name: str) -> None:
    own = store(role.endpoint, name, role.token())
    other = store(role.endpoint, OTHER, role.token())
    assert own.get("task.json").bytes()
    _unreadable(own, "laptop/seed")
    _unwritable(own, "laptop/seed", "task.json", "environment.json", "boot/agent.zip")
    _unreadable(other, "task.json")
    _unwritable(other, "task.json", "logs/1")
    refused(*_FORBIDDEN, role.call, "GET", "storage", f"storage/v1/b/{OTHER}/o")
    refused(*_FORBIDDEN, role.call, "GET", "storage", f"storage/v1/b/{name}/iam")
    refused(*_FORBIDDEN, role.call, "DELETE", "storage", f"storage/v1/b/{name}")
    refused(*_FORBIDDEN, role.call, "GET", "storage", "storage/v1/b", project="simulated-project")


def _unreadable(bucket: Any, path: str) -> None:
    try:
        obstore.get(bucket, path)
    except PermissionDeniedError:
        return
    raise AssertionError(f"{path} can be read")


def _unwritable(bucket: Any, *paths: str) -> None:
    for path in paths:
        try:
            obstore.put(bucket, path, b"", use_multipart=False)
        except PermissionDeniedError:
            continue
        raise AssertionError(f"{path} can be written")


def _check_project(role: User, name: str) -> None:
    denied = (403, "PERMISSION_DENIED")
    refused(*denied, role.policy)
    refused(*denied, role.set_policy, {"bindings": []})
    refused(*denied, role.make_account, "another")
    email = address_of(name, "simulated-project")
    path = f"v1/projects/-/serviceAccounts/{email}"
    refused(*denied, role.call, "GET", "iam", path)
    refused(*denied, role.call, "POST", "iamcredentials", f"{path}:generateAccessToken", _TOKEN)


_TOKEN = {"scope": ["https://www.googleapis.com/auth/cloud-platform"]}


def _check_groups(role: User, name: str) -> None:
    """All on its own group, which Google does not divide further; nothing on any other."""
    assert role.group(name)["name"] == name
    refused(*_FORBIDDEN, role.group, OTHER)
    refused(*_FORBIDDEN, role.begin, f"zones/{ZONE}/instanceGroupManagers/{OTHER}/resize", size=1)
    for path in (
        f"zones/{ZONE}/instances",
        f"zones/{ZONE}/instanceGroupManagers",
        f"global/instanceTemplates/{name}",
        f"global/firewalls/{name}",
    ):
        refused(*_FORBIDDEN, role.get, path)
    refused(*_FORBIDDEN, role.make_template, "")
