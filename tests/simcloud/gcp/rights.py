"""Which permissions a call needs, and on what, as Google documents them.

Whether the caller has them does not belong here, see `policies`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.simcloud.gcp import storage_rights
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.compute_rights import of_compute
from tests.simcloud.gcp.policies import Resource
from tests.simcloud.gcp.project import PROJECT, Project
from tests.simcloud.gcp.storage_model import Buckets
from tests.simcloud.gcp.store import Store
from tests.simcloud.gcp.wire import GCPError, error_info

_OTHERS = {
    "cloudresourcemanager:projects.get": "resourcemanager.projects.get",
    "cloudresourcemanager:projects.getIamPolicy": "resourcemanager.projects.getIamPolicy",
    "cloudresourcemanager:projects.setIamPolicy": "resourcemanager.projects.setIamPolicy",
    "cloudresourcemanager:projects.testIamPermissions": "",
    "iam:projects.roles.create": "iam.roles.create",
    "iam:projects.roles.delete": "iam.roles.delete",
    "iam:projects.roles.get": "iam.roles.get",
    "iam:projects.roles.patch": "iam.roles.update",
    "iam:projects.roles.undelete": "iam.roles.undelete",
    "iam:projects.serviceAccounts.create": "iam.serviceAccounts.create",
    "iam:projects.serviceAccounts.list": "iam.serviceAccounts.list",
    "policytroubleshooter:iam.troubleshoot": "",
    "serviceusage:services.enable": "serviceusage.services.enable",
    "serviceusage:services.get": "serviceusage.services.get",
    "serviceusage:services.list": "serviceusage.services.list",
}
_ON_ACCOUNTS = {
    "iam:projects.serviceAccounts.delete": "iam.serviceAccounts.delete",
    "iam:projects.serviceAccounts.get": "iam.serviceAccounts.get",
    "iam:projects.serviceAccounts.getIamPolicy": "iam.serviceAccounts.getIamPolicy",
    "iam:projects.serviceAccounts.setIamPolicy": "iam.serviceAccounts.setIamPolicy",
    "iam:projects.serviceAccounts.testIamPermissions": "",
    "iamcredentials:projects.serviceAccounts.generateAccessToken": (
        "iam.serviceAccounts.getAccessToken"
    ),
}


@dataclass(frozen=True)
class Need:
    """A permission on a resource."""

    permission: str
    resource: Resource


def needed(call: Call, project: Project, store: Store, buckets: Buckets) -> Iterator[Need]:
    """All that the caller must have, in the order in which they are looked at."""
    if call.service == "compute":
        found = of_compute(call, project, store)
    elif call.service == "storage":
        found = storage_rights.needed(call, project, buckets)
    elif call.name in _ON_ACCOUNTS:
        found = iter([(_ON_ACCOUNTS[call.name], account(project, call.places))])
    elif call.name in _OTHERS:
        found = iter([(_OTHERS[call.name], project.itself)])
    else:
        raise NotImplementedError(f"{call.name} is not known here")
    return (Need(permission, resource) for permission, resource in found if permission)


def account(project: Project, places: dict[str, str]) -> Resource:
    """The service account that a path names, with its own policy."""
    full = places.get("name") or places.get("resource") or ""
    found = project.accounts.find(full.rpartition("/")[2])
    return Resource(full, policies=(found.policy,) if found else ())


def denied(call: Call, need: Need) -> GCPError:
    """As the service says that a permission is missing."""
    permission, name = need.permission, need.resource.said or need.resource.name
    if permission == "iam.serviceAccounts.actAs":
        email = name.rpartition("/")[2]
        message = (
            f"The user does not have access to service account '{email}'.  User: '{call.who}'.  "
            f"Ask a project owner to grant you the iam.serviceAccountUser role on the service "
            f"account"
        )
        return GCPError("forbidden", message, 403)
    if call.service == "compute":
        return GCPError("forbidden", f"Required '{permission}' permission for '{name}'", 403)
    if call.service == "storage":
        return storage_rights.denied(call, permission, name)
    if call.service == "cloudresourcemanager":
        info = error_info(
            "IAM_PERMISSION_DENIED",
            "cloudresourcemanager.googleapis.com",
            permission=permission,
            resource=f"projects/{PROJECT}",
        )
        message = "The caller does not have permission"
        return GCPError("PERMISSION_DENIED", message, 403, details=[info])
    info = error_info(
        "IAM_PERMISSION_DENIED",
        f"{call.service}.googleapis.com",
        permission=permission,
        resource=name,
    )
    message = f"Permission '{permission}' denied on resource (or it may not exist)."
    return GCPError("PERMISSION_DENIED", message, 403, details=[info])
