"""Everything that is in the project and was not there when it was new, to see what was left."""

from __future__ import annotations

from collections.abc import Iterator

from tests.simcloud.gcp.project import PROJECT, Project
from tests.simcloud.gcp.storage_model import Buckets
from tests.simcloud.gcp.store import Store

_COLLECTIONS = {
    "disks": "disk",
    "firewalls": "firewall",
    "images": "image",
    "instanceGroupManagers": "group",
    "instanceTemplates": "template",
    "instances": "instance",
    "networks": "network",
    "subnetworks": "subnetwork",
}


class Inventory:
    """What there is, without what there was at first and what a test made for itself."""

    def __init__(self, project: Project, store: Store, buckets: Buckets) -> None:
        self._project = project
        self._store = store
        self._buckets = buckets
        self._known: set[str] = set()

    def accept(self) -> None:
        """What there is now belongs to the project."""
        self._known = set(self._all())

    def tolerate(self, *lines: str) -> None:
        """What a test makes for itself."""
        self._known |= set(lines)

    def found(self) -> list[str]:
        """A line for each resource of any kind."""
        return sorted(set(self._all()) - self._known)

    def _all(self) -> Iterator[str]:
        for collection, word in _COLLECTIONS.items():
            for path, record in self._store.everywhere(collection):
                place = path.split("/")[3]
                where = f" in {place}" if collection != "instanceTemplates" else ""
                where = "" if path.split("/")[2] == "global" else where
                yield f"{word} {record['name']}{where}"
        for bucket in self._buckets.all.values():
            yield f"bucket {bucket.name}"
            for name in bucket.objects:
                yield f"object {bucket.name}/{name}"
            for upload in bucket.uploads.values():
                yield f"upload {bucket.name}/{upload.name}"
            for kept in bucket.soft_deleted:
                yield f"soft-deleted object {bucket.name}/{kept.name}"
        for email in self._project.accounts.all:
            if email.endswith(f"@{PROJECT}.iam.gserviceaccount.com"):
                yield f"service account {email}"
        for role in self._project.roles.custom.values():
            if not role.deleted:
                yield f"role {role.name}"
        for role_name, member in self._project.policies.project.members():
            yield f"binding {role_name} of {member}"
