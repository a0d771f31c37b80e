"""Images that the project takes of its own disks, with what is on them.

The public images do not belong here, see `catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.gcp import rules
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.catalogue import region_of
from tests.simcloud.gcp.instances import Fleet
from tests.simcloud.gcp.project import Project, new_id, timestamp
from tests.simcloud.gcp.store import Store, fingerprint, link, overall, path_of
from tests.simcloud.gcp.wire import GCPError

_KNOWN = {"name", "description", "labels", "sourceDisk"}


class Taking:
    """Makes and deletes them; each method is called with the lock held."""

    def __init__(
        self, project: Project, store: Store, fleet: Fleet, begin: Callable[..., dict[str, Any]]
    ) -> None:
        self._project = project
        self._store = store
        self._fleet = fleet
        self._begin = begin
        self.methods: Mapping[str, Callable[[Call], dict[str, Any]]] = {
            "images.delete": self._delete,
            "images.insert": self._insert,
        }

    def _insert(self, call: Call) -> dict[str, Any]:
        body = dict(call.body or {})
        if foreign := body.keys() - _KNOWN:
            raise NotImplementedError(f"images with {sorted(foreign)} are not known here")
        rules.check_name(body.get("name"), "resource.name")
        rules.check_labels(body.get("labels", {}), "resource.labels")
        source = path_of(body["sourceDisk"])
        disk = self._store.used(source, "sourceDisk")
        [user] = [self._fleet.find(path_of(each)) for each in disk["users"]]
        assert user
        if not call.asked_flag("forceCreate"):
            message = f"The disk resource '{source}' is already being used by '{user.path}'"
            raise GCPError("resourceInUseByAnotherResource", message, 400)
        path = overall("images", body["name"])
        self._store.reserve(path)
        labels = body.get("labels", {})
        clock = self._project.clock
        record = {
            "kind": "compute#image",
            "id": new_id(),
            "creationTimestamp": timestamp(clock),
            **body,
            "labelFingerprint": fingerprint(labels),
            "sourceDisk": link(source),
            "sourceDiskId": disk["id"],
            "sourceType": "RAW",
            "status": "PENDING",
            "architecture": "X86_64",
            "diskSizeGb": disk["sizeGb"],
            "storageLocations": [region_of(user.zone)],
            "selfLink": link(path),
        }
        self._store.add(path, record)  # it is told of while it is made
        self._fleet.capture(user, path)
        return self._begin(
            call,
            "insert",
            path,
            record["id"],
            takes=self._project.timing.image_ready,
            end=lambda: record.update(status="READY"),
            undo=lambda: self._store.remove(path),
        )

    def _delete(self, call: Call) -> dict[str, Any]:
        path = overall("images", call.places["image"])
        record = self._store.get(path)
        if record["status"] == "PENDING":
            raise GCPError("resourceNotReady", f"The resource '{path}' is not ready", 400)
        end = lambda: self._store.remove(path)  # noqa: E731
        return self._begin(call, "delete", path, record["id"], end=end)
