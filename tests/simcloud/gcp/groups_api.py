"""Managed instance groups: what callers can do to them, and what they are told.

What groups do by themselves does not belong here, see `scaler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.gcp import filters, lists, rules
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.catalogue import region_of
from tests.simcloud.gcp.groups import Group, Member
from tests.simcloud.gcp.operations import Operation, Operations
from tests.simcloud.gcp.project import PROJECT, Project, new_id, timestamp
from tests.simcloud.gcp.quotas import Quotas
from tests.simcloud.gcp.scaler import Scaler
from tests.simcloud.gcp.store import Store, fingerprint, link, path_of, zonal
from tests.simcloud.gcp.wire import GCPError, invalid

_CREATED = {
    "allInstancesConfig", "baseInstanceName", "description", "instanceLifecyclePolicy",
    "instanceTemplate",
    "listManagedInstancesResults", "name", "targetSize", "updatePolicy", "versions",
}  # fmt: skip
_PATCHED = {
    "allInstancesConfig", "description", "fingerprint", "instanceLifecyclePolicy", "updatePolicy",
}  # fmt: skip
_MOST = 1000


class GroupsAPI:
    """All methods that are known; each is called with the lock held."""

    def __init__(
        self,
        project: Project,
        store: Store,
        scaler: Scaler,
        operations: Operations,
        quotas: Quotas,
    ) -> None:
        self._project = project
        self._store = store
        self._scaler = scaler
        self._operations = operations
        self._quotas = quotas
        self.methods: Mapping[str, Callable[[Call], dict[str, Any]]] = {
            "instanceGroupManagers.abandonInstances": self._abandon,
            "instanceGroupManagers.delete": self._delete,
            "instanceGroupManagers.deleteInstances": self._delete_instances,
            "instanceGroupManagers.insert": self._insert,
            "instanceGroupManagers.listErrors": self._errors,
            "instanceGroupManagers.listManagedInstances": self._instances,
            "instanceGroupManagers.patch": self._patch,
            "instanceGroupManagers.recreateInstances": self._recreate_instances,
            "instanceGroupManagers.resize": self._resize,
        }

    def _insert(self, call: Call) -> dict[str, Any]:
        body, zone = call.body or {}, call.places["zone"]
        if foreign := body.keys() - _CREATED:
            raise NotImplementedError(f"groups with {sorted(foreign)} are not known here")
        rules.check_name(body.get("name"), "resource.name")
        rules.check_name(body.get("baseInstanceName"), "resource.baseInstanceName", 58)
        size, template = body.get("targetSize"), _template(body)
        if size is None:
            raise GCPError("required", "Required field 'resource.targetSize' not specified", 400)
        _check_size(size)
        self._store.used(path_of(template), "resource.instanceTemplate")
        name = body["name"]
        path = zonal(zone, "instanceGroupManagers", name)
        self._quotas.check_count("instanceGroupManagers", region_of(zone))
        self._store.reserve(path)
        record = {
            "kind": "compute#instanceGroupManager",
            "id": new_id(),
            "creationTimestamp": timestamp(self._project.clock),
            "zone": link(f"projects/{PROJECT}/zones/{zone}"),
            **body,
            "instanceTemplate": link(path_of(template)),
            "versions": [{"instanceTemplate": link(path_of(template))}],
            "instanceGroup": link(zonal(zone, "instanceGroups", name)),
            "fingerprint": fingerprint([name, body]),
            "selfLink": link(path),
        }
        group = Group(zone, name, record, size)

        def made() -> None:
            self._store.add(path, record)
            self._scaler.groups[path] = group

        undo = lambda: self._store.release(path)  # noqa: E731
        return self._start(call, group, "insert", end=made, undo=undo)

    def _delete(self, call: Call) -> dict[str, Any]:
        group = self._found(call)
        group.deleting = True

        def gone() -> None:
            self._store.remove(group.path)
            del self._scaler.groups[group.path]

        return self._start(call, group, "delete", ready=lambda: not group.members, end=gone)

    def _resize(self, call: Call) -> dict[str, Any]:
        group, size = self._changeable(call), call.asked_number("size", 0)
        _check_size(size)
        kind = "compute.instanceGroupManagers.resize"

        def resized() -> None:
            group.target = size

        return self._start(call, group, kind, end=resized)

    def _abandon(self, call: Call) -> dict[str, Any]:
        """They go on, and are the group's no more."""
        group = self._changeable(call)
        chosen = _chosen(group, call.body or {})

        def abandoned() -> None:
            for member in chosen:
                if group.members.pop(member.name, None):
                    group.target = max(group.target - 1, 0)

        kind = "compute.instanceGroupManagers.abandonInstances"
        return self._start(call, group, kind, end=abandoned)

    def _delete_instances(self, call: Call) -> dict[str, Any]:
        group = self._changeable(call)
        chosen = _chosen(group, call.body or {})

        def deleted() -> None:
            for member in chosen:
                if member.action != "DELETING":
                    group.target = max(group.target - 1, 0)
                    self._scaler.remove(member)

        kind = "compute.instanceGroupManagers.deleteInstances"
        return self._start(call, group, kind, end=deleted)

    def _recreate_instances(self, call: Call) -> dict[str, Any]:
        group = self._changeable(call)
        chosen = _chosen(group, call.body or {})

        def begun() -> None:
            for member in chosen:
                if member.action != "DELETING":
                    self._scaler.recreate(member)

        kind = "compute.instanceGroupManagers.recreateInstances"
        return self._start(call, group, kind, end=begun)

    def _patch(self, call: Call) -> dict[str, Any]:
        group, body = self._changeable(call), dict(call.body or {})
        if foreign := body.keys() - _PATCHED:
            raise NotImplementedError(f"patches of {sorted(foreign)} are not known here")
        given = body.pop("fingerprint", group.record["fingerprint"])
        if given != group.record["fingerprint"]:
            raise GCPError("conditionNotMet", "Invalid fingerprint.", 412)

        def patched() -> None:
            group.record.update(_merged(group.record, body))
            group.record["fingerprint"] = fingerprint(group.record)

        return self._start(call, group, "patch", end=patched)

    def _instances(self, call: Call) -> dict[str, Any]:
        found = filters.selected(call.asked("filter"), self._found(call).listed())
        return {"managedInstances": found} if found else {}

    def _errors(self, call: Call) -> dict[str, Any]:
        found, more = lists.page(call, self._found(call).errors)
        return {"items": found, **more} if found else {}

    def _found(self, call: Call) -> Group:
        path = zonal(
            call.places["zone"], "instanceGroupManagers", call.places["instanceGroupManager"]
        )
        self._store.get(path)
        return self._scaler.groups[path]

    def _changeable(self, call: Call) -> Group:
        group = self._found(call)
        if group.deleting:
            message = f"The resource '{group.path}' is not ready"
            raise GCPError("resourceNotReady", message, 400)
        return group

    def _start(self, call: Call, group: Group, kind: str, **behaviour: Any) -> dict[str, Any]:
        operation: Operation = self._operations.start(
            f"zones/{group.zone}",
            call.name,
            kind,
            group.path,
            group.record["id"],
            call.who,
            call.asked("requestId"),
            **behaviour,
        )
        return operation.described()


def _template(body: Mapping[str, Any]) -> str:
    versions = body.get("versions", [])
    if len(versions) > 1:
        raise NotImplementedError("groups with several versions are not known here")
    given = body.get("instanceTemplate") or (
        versions[0].get("instanceTemplate") if versions else ""
    )
    if not given:
        message = "Required field 'resource.instanceTemplate' not specified"
        raise GCPError("required", message, 400)
    return str(given)


def _chosen(group: Group, body: Mapping[str, Any]) -> list[Member]:
    """The members that a call names."""
    given = body.get("instances", [])
    if not given:
        raise GCPError("required", "Required field 'instances' not specified", 400)
    if len(given) > _MOST:
        raise invalid("instances", len(given), f"At most {_MOST} instances are allowed.")
    chosen = []
    for url in given:
        name = path_of(url).rpartition("/")[2]
        member = group.members.get(name)
        if member is None or path_of(url) != zonal(group.zone, "instances", name):
            if body.get("skipInstancesOnValidationError"):
                continue
            raise invalid("instances", url, f"Not a member of {group.path}")
        if member.action != "DELETING":
            chosen.append(member)
    return chosen


def _merged(there: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A patch merges what has parts, and removes what is null."""
    found = dict(there)
    for key, value in given.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _merged(found[key], value)
        else:
            found[key] = value
    return found


def _check_size(size: int) -> None:
    if not 0 <= size <= _MOST:
        raise invalid("size", size, f"Must be from 0 to {_MOST}.")
