"""Roles as sets of permissions: a few of Google's own, and those that are made in the project."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

_EDITOR_LACKS = ("*.setIamPolicy", "iam.roles.*", "resourcemanager.projects.setIamPolicy")
_PREDEFINED = {
    "roles/compute.instanceAdmin.v1": ("compute.*",),
    "roles/compute.viewer": ("compute.*.get", "compute.*.list", "compute.*.aggregatedList"),
    "roles/iam.serviceAccountUser": (
        "iam.serviceAccounts.actAs", "iam.serviceAccounts.get", "iam.serviceAccounts.list",
    ),
    "roles/iam.workloadIdentityUser": (
        "iam.serviceAccounts.get", "iam.serviceAccounts.getAccessToken",
        "iam.serviceAccounts.getOpenIdToken", "iam.serviceAccounts.list",
    ),
    "roles/owner": ("*",),
    "roles/storage.admin": ("storage.*",),
    "roles/storage.legacyBucketOwner": (
        "storage.buckets.get*", "storage.buckets.setIamPolicy", "storage.buckets.update",
        "storage.objects.create", "storage.objects.delete", "storage.objects.list",
        "storage.multipartUploads.*",
    ),
    "roles/storage.legacyBucketReader": (
        "storage.buckets.get", "storage.objects.list", "storage.multipartUploads.list",
    ),
    "roles/storage.legacyObjectOwner": (
        "storage.objects.get*", "storage.objects.setIamPolicy", "storage.objects.update",
    ),
    "roles/storage.legacyObjectReader": ("storage.objects.get",),
    "roles/storage.objectAdmin": (
        "storage.objects.*", "storage.multipartUploads.*", "storage.folders.*",
        "resourcemanager.projects.get", "resourcemanager.projects.list",
    ),
    "roles/storage.objectCreator": (
        "storage.objects.create", "storage.multipartUploads.create",
        "storage.multipartUploads.abort", "storage.multipartUploads.listParts",
    ),
    "roles/storage.objectUser": (
        "storage.objects.create", "storage.objects.delete", "storage.objects.get",
        "storage.objects.list", "storage.objects.update", "storage.objects.restore",
        "storage.multipartUploads.*",
    ),
    "roles/storage.objectViewer": (
        "storage.objects.get", "storage.objects.list", "resourcemanager.projects.get",
    ),
}  # fmt: skip


@dataclass
class Custom:
    """A role of the project."""

    name: str
    permissions: set[str]
    title: str = ""
    description: str = ""
    stage: str = "GA"
    deleted: bool = False


@dataclass
class Roles:
    """All that bindings may name."""

    custom: dict[str, Custom] = field(default_factory=dict)

    def known(self, role: str) -> bool:
        return role in _PREDEFINED or role == "roles/editor" or role in self.custom

    def includes(self, role: str, permission: str) -> bool:
        if role == "roles/editor":
            return not any(fnmatchcase(permission, each) for each in _EDITOR_LACKS)
        if role in self.custom:
            found = self.custom[role]
            return permission in found.permissions and not found.deleted
        return any(fnmatchcase(permission, each) for each in _PREDEFINED.get(role, ()))
