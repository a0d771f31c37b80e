"""What is made in a project for a task beside its store and its group."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.clouds.gcp import policy
from sojourn.clouds.gcp.locations import note_of
from sojourn.clouds.gcp.task_context import GoogleContext, GoogleResource
from sojourn.clouds.vm.options import ANYWHERE, ssh_from
from sojourn.clouds.vm.resource import TaskResource
from sojourn.clouds.vm.waiting import until_known
from sojourn.core.errors import AuthError, Conflict, NotFound
from sojourn.core.parallel import together

if TYPE_CHECKING:
    from collections.abc import Callable

    from sojourn.core.context import Context

__all__ = ["Firewall", "ServiceAccount", "address_of"]

_Policy = dict[str, Any]
_Protocols = dict[str, Any]
_SSH = "22"
_RULES = "global/firewalls"
_GANG, _OURS, _AFTER_OURS = 800, 900, 1000  # priorities
_BY_SSH: _Protocols = {"IPProtocol": "tcp", "ports": [_SSH]}
_BY_ANYTHING: _Protocols = {"IPProtocol": "all"}


def address_of(name: str, project: str) -> str:
    """The address of the service account of a task, whose id is too long for it."""
    short = hashlib.sha256(name.encode()).hexdigest()[:24]
    return f"tpi-{short}@{project}.iam.gserviceaccount.com"


class ServiceAccount(TaskResource[GoogleContext]):
    """Who machines are, and what they may do."""

    kind = "service account"

    def find(self) -> bool:
        self._call("GET", self._path)
        return True

    def create(self, ctx: Context) -> None:
        short = self._email.partition("@")[0]
        body = {
            "accountId": short,
            "serviceAccount": {
                "displayName": self._name,
                "description": "Machines of a Sojourn task",
            },
        }
        try:
            self._call("POST", f"v1/projects/{self._project}/serviceAccounts", body)
        except Conflict:
            self.find()  # it is there, from an earlier try
        location, member = self._context.location, f"serviceAccount:{self._email}"
        group = policy.on_group(self._project, location.zone, self._name, member)
        together(
            [
                partial(self._bind_project, ctx, partial(policy.with_bindings, wanted=group)),
                partial(
                    self._bind_bucket,
                    ctx,
                    partial(policy.with_bindings, wanted=policy.on_bucket(location, member)),
                ),
            ]
        )

    def delete(self, ctx: Context) -> None:
        self.remove(ctx)

    def remove(self, ctx: Context) -> None:
        """The bindings first: Google keeps those of accounts that are deleted."""
        try:
            self._unbind(ctx)
        except AuthError:
            # Who gives tasks another account need not be able to change policies.
            if self.read(ctx):
                raise
            return
        try:
            self._call("DELETE", self._path)
        except NotFound:
            return

    def _unbind(self, ctx: Context) -> None:
        drop = partial(policy.without, email=self._email)
        self._bind_project(ctx, drop)
        if self._context.is_contained:  # else they go with the bucket
            with suppress(NotFound):
                self._bind_bucket(ctx, drop)

    def _bind_project(self, ctx: Context, change: Callable[[_Policy], _Policy | None]) -> None:
        path = f"v1/projects/{self._project}"
        options = {"options": {"requestedPolicyVersion": 3}}

        def call(verb: str, body: Any) -> Any:
            return self._context.account.call(
                "policy of the project", "cloudresourcemanager", "POST", f"{path}:{verb}", body
            )

        policy.change_policy(
            ctx,
            lambda: call("getIamPolicy", options),
            lambda changed: call("setIamPolicy", {"policy": changed}),
            change,
        )

    def _bind_bucket(self, ctx: Context, change: Callable[[_Policy], _Policy | None]) -> None:
        bucket = self._context.location.bucket
        path = f"storage/v1/b/{bucket}/iam"

        def call(method: str, body: Any = None, **query: Any) -> Any:
            return self._context.account.call(
                f"policy of bucket {bucket}", "storage", method, path, body, **query
            )

        policy.change_policy(
            ctx,
            lambda: call("GET", optionsRequestedPolicyVersion=3),
            lambda changed: call("PUT", changed),
            change,
        )

    @property
    def _project(self) -> str:
        return self._context.account.project

    @property
    def _email(self) -> str:
        return address_of(self._name, self._project)

    @property
    def _path(self) -> str:
        return f"v1/projects/{self._project}/serviceAccounts/{self._email}"

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return self._context.account.call(self.title, "iam", method, path, body)


class Firewall(GoogleResource):
    """Lets SSH in, and tells where the task is. Machines of a gang are open to each other, and
    closed to all others: Google's default network lets in all that comes from inside."""

    kind = "firewall rule"

    def find(self) -> bool:
        self._call("GET", f"{_RULES}/{self._name}")
        return True

    def create(self, ctx: Context) -> None:
        if not self._context.location.contained:  # else it came with the folder
            self.make(ctx)

    def make(self, ctx: Context) -> None:
        wanted = self._context.require_task()
        networks = ssh_from(wanted)
        note = note_of(self._context.location.zone, wanted.storage.container)
        if networks != ANYWHERE or wanted.gang:
            # The default network has a rule for everybody, which comes after these.
            denied = [_BY_ANYTHING if wanted.gang else _BY_SSH]
            everybody = {"denied": denied, "sourceRanges": list(ANYWHERE)}
            self._insert(ctx, self._closed, _AFTER_OURS, everybody)
        if wanted.gang:
            members = {"allowed": [_BY_ANYTHING], "sourceTags": [self._name]}
            self._insert(ctx, self._members, _GANG, members)
        kind = "allowed" if networks else "denied"
        door = {kind: [_BY_SSH], "sourceRanges": list(networks or ANYWHERE)}
        self._insert(ctx, self._name, _OURS, door, note)

    def _insert(
        self, ctx: Context, name: str, priority: int, rule: dict[str, Any], note: str = ""
    ) -> None:
        body = {
            "name": name,
            "description": note,
            "network": self._context.offer.network.network,
            "direction": "INGRESS",
            "priority": priority,
            "targetTags": [self._name],
            **rule,
        }
        try:
            self._change(ctx, "POST", _RULES, body)
        except Conflict:
            # It is there, from an earlier try, or somebody makes it now.
            until_known(ctx, partial(self._call, "GET", f"{_RULES}/{name}"))

    def delete(self, ctx: Context) -> None:
        if not self._context.is_contained:  # else it goes with the folder
            self.remove(ctx)

    def remove(self, ctx: Context) -> None:
        for name in (
            self._members,
            self._closed,
            self._name,
        ):  # what tells where the task is goes last
            with suppress(NotFound):
                self._change(ctx, "DELETE", f"{_RULES}/{name}")

    @property
    def _members(self) -> str:
        """The rule that opens machines of a gang to each other."""
        return f"{self._name}-gang"

    @property
    def _closed(self) -> str:
        """The rule that lets nobody else in."""
        return f"{self._name}-closed"
