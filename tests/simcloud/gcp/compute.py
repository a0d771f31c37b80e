"""Compute Engine: reading what there is, and all that is made and deleted but groups.

Groups are in `groups_api`. What happens by itself does not belong here, see `scaler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.gcp import catalogue, filters, lists, networks, properties, rules
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.groups_api import GroupsAPI
from tests.simcloud.gcp.instances import Fleet, Instance
from tests.simcloud.gcp.offers import Offers
from tests.simcloud.gcp.operations import Operations
from tests.simcloud.gcp.project import PROJECT, Project, new_id, timestamp
from tests.simcloud.gcp.quotas import GLOBAL, Quotas
from tests.simcloud.gcp.scaler import Scaler
from tests.simcloud.gcp.store import Store, check_fingerprint, fingerprint, link, overall, path_of
from tests.simcloud.gcp.taken import Taking
from tests.simcloud.gcp.wire import GCPError, invalid, not_found

_STORED = {
    "disks": "disk",
    "firewalls": "firewall",
    "instanceGroupManagers": "instanceGroupManager",
    "instanceTemplates": "instanceTemplate",
    "instances": "instance",
    "networks": "network",
    "subnetworks": "subnetwork",
}
_WAIT = 120.0


class Compute:
    """All methods that are known; each is called with the lock held."""

    def __init__(
        self,
        project: Project,
        store: Store,
        fleet: Fleet,
        scaler: Scaler,
        operations: Operations,
        quotas: Quotas,
    ) -> None:
        self._project = project
        self._store = store
        self._fleet = fleet
        self._scaler = scaler
        self._operations = operations
        self._quotas = quotas
        self._changes: Mapping[str, Callable[[Call], dict[str, Any]]] = {
            "disks.delete": self._delete_disk,
            "firewalls.delete": self._delete_firewall,
            "firewalls.insert": self._insert_firewall,
            "instanceTemplates.delete": self._delete_template,
            "instanceTemplates.insert": self._insert_template,
            "instances.delete": self._delete_instance,
            "instances.reset": self._reset,
            "instances.setLabels": self._set_labels,
            "instances.setMetadata": self._set_metadata,
            "instances.simulateMaintenanceEvent": self._maintain,
            **Taking(project, store, fleet, self._begin).methods,
            **GroupsAPI(project, store, scaler, operations, quotas).methods,
        }
        self._reads: Mapping[str, Callable[[Call], dict[str, Any]]] = {
            "instances.getSerialPortOutput": self._serial,
            **Offers(quotas, store).methods,
        }

    def answer(self, call: Call) -> dict[str, Any]:
        collection, _, verb = call.operation.partition(".")
        self._check_place(call, collection)
        if collection.endswith("Operations"):
            return self._operation(call, verb)
        if call.operation in self._changes:
            again = self._operations.repeated(call.name, call.asked("requestId"))
            return again.described() if again else self._changes[call.operation](call)
        if call.operation in self._reads:
            return self._reads[call.operation](call)
        looks = {"get": self._get, "list": self._list, "aggregatedList": self._list_everywhere}
        if collection in _STORED and verb in looks:
            return looks[verb](call, collection)
        raise NotImplementedError(f"{call.name} is not known here")

    def _check_place(self, call: Call, collection: str) -> None:
        project, places = call.places["project"], call.places
        if project != PROJECT and collection != "images":
            raise not_found(f"projects/{project}")
        for kind, known in (("zone", catalogue.ZONES), ("region", catalogue.regions())):
            if kind in places and places[kind] not in known:
                raise invalid(kind, places[kind], f"Unknown {kind}.")

    # Reading what is stored

    def _get(self, call: Call, collection: str) -> dict[str, Any]:
        assert call.method
        return self._shown(call.method.spec["path"].format(**call.places))

    def _list(self, call: Call, collection: str) -> dict[str, Any]:
        parent = self._parent(call)
        records = [
            self._shown(path_of(each["selfLink"])) for each in self._store.of(parent, collection)
        ]
        kind = f"compute#{_STORED[collection]}List"
        return lists.paged(call, kind, records, f"{parent}/{collection}")

    def _list_everywhere(self, call: Call, collection: str) -> dict[str, Any]:
        records = [self._shown(path) for path, _ in self._store.everywhere(collection)]
        found, more = lists.page(call, filters.selected(call.asked("filter"), records))
        items: dict[str, Any] = {}
        for record in found:
            scope = "/".join(path_of(record["selfLink"]).split("/")[2:4])
            items.setdefault(scope, {collection: []})[collection].append(record)
        for zone in catalogue.ZONES if not call.asked_flag("returnPartialSuccess") else ():
            items.setdefault(f"zones/{zone}", _no_results(zone))
        return {
            "kind": f"compute#{_STORED[collection]}AggregatedList",
            "id": f"projects/{PROJECT}/aggregated/{collection}",
            "items": items,
            "selfLink": link(f"projects/{PROJECT}/aggregated/{collection}"),
            **more,
        }

    def _shown(self, path: str) -> dict[str, Any]:
        record = self._store.get(path)
        group = self._scaler.groups.get(path)
        return group.described() if group else record

    @staticmethod
    def _parent(call: Call) -> str:
        assert call.method
        path: str = call.method.spec["path"].format(**call.places)
        return path.rpartition("/")[0]

    # Operations

    def _operation(self, call: Call, verb: str) -> dict[str, Any]:
        if verb == "list":
            parent = self._parent(call)
            found = [
                each.described()
                for path, each in self._operations.all.items()
                if path.startswith(f"{parent}/operations/")
            ]
            return lists.paged(call, "compute#operationList", found, f"{parent}/operations")
        if verb not in ("get", "wait"):
            raise NotImplementedError(f"{call.name} is not known here")
        assert call.method
        path = call.method.spec["path"].format(**call.places).removesuffix("/wait")
        operation = self._operations.get(path)
        if verb == "wait":
            clock = self._project.clock
            give_up = clock.now() + _WAIT
            while not operation.done and clock.now() < give_up:
                self._project.changed.wait(0.05)
        return operation.described()

    # Templates, firewalls, disks

    def _insert_template(self, call: Call) -> dict[str, Any]:
        body = dict(call.body or {})
        if foreign := body.keys() - {"name", "description", "properties"}:
            raise NotImplementedError(f"templates with {sorted(foreign)} are not known here")
        rules.check_name(body.get("name"), "resource.name")
        properties.check(body.get("properties", {}), self._project, self._store)
        return self._make(call, "instanceTemplates", body)

    def _delete_template(self, call: Call) -> dict[str, Any]:
        path = overall("instanceTemplates", call.places["instanceTemplate"])
        self._store.get(path)
        for group in self._scaler.groups.values():
            if path_of(group.template) == path:
                raise _in_use("instance_template", path, group.path)
        return self._unmake(call, path)

    def _insert_firewall(self, call: Call) -> dict[str, Any]:
        body = dict(call.body or {})
        rules.check_firewall(body)
        network = path_of(body.get("network", overall("networks", "default")))
        self._store.used(network, "resource.network")
        body = networks.with_defaults(body, link(network))
        return self._make(call, "firewalls", body)

    def _delete_firewall(self, call: Call) -> dict[str, Any]:
        path = overall("firewalls", call.places["firewall"])
        self._store.get(path)
        return self._unmake(call, path)

    def _delete_disk(self, call: Call) -> dict[str, Any]:
        path = f"projects/{PROJECT}/zones/{call.places['zone']}/disks/{call.places['disk']}"
        for user in self._store.get(path).get("users", []):
            if self._store.has(path_of(user)):
                raise _in_use("disk", path, path_of(user))
        return self._unmake(call, path)

    def _make(self, call: Call, collection: str, body: dict[str, Any]) -> dict[str, Any]:
        path = overall(collection, body["name"])
        self._quotas.check_count(collection, GLOBAL)
        self._store.reserve(path)
        record = {
            "kind": f"compute#{_STORED[collection]}",
            "id": new_id(),
            "creationTimestamp": timestamp(self._project.clock),
            **body,
            "selfLink": link(path),
        }
        end = lambda: self._store.add(path, record)  # noqa: E731
        undo = lambda: self._store.release(path)  # noqa: E731
        return self._begin(call, "insert", path, record["id"], end=end, undo=undo)

    def _unmake(self, call: Call, path: str) -> dict[str, Any]:
        end = lambda: self._store.remove(path)  # noqa: E731
        return self._begin(call, "delete", path, self._store.get(path)["id"], end=end)

    def _begin(
        self, call: Call, kind: str, path: str, target: str, **behaviour: Any
    ) -> dict[str, Any]:
        parts = path.split("/")
        scope = "global" if parts[2] == "global" else "/".join(parts[2:4])
        return self._operations.start(
            scope, call.name, kind, path, target, call.who, call.asked("requestId"), **behaviour
        ).described()

    # Instances

    def _found(self, call: Call) -> Instance:
        path = f"projects/{PROJECT}/zones/{call.places['zone']}/instances/{call.places['instance']}"
        self._store.get(path)
        instance = self._fleet.find(path)
        if instance is None:
            raise not_found(path)
        return instance

    def _delete_instance(self, call: Call) -> dict[str, Any]:
        instance = self._found(call)
        self._fleet.delete(instance)
        ready = lambda: instance.gone  # noqa: E731
        return self._begin(call, "delete", instance.path, instance.id, ready=ready)

    def _reset(self, call: Call) -> dict[str, Any]:
        """As if its power were cut for a moment."""
        instance = self._running(call)
        assert instance.life
        instance.life.reset()
        return self._begin(call, "reset", instance.path, instance.id)

    def _maintain(self, call: Call) -> dict[str, Any]:
        """A spot instance is preempted by this; others are moved, which they do not notice."""
        instance = self._running(call)
        if instance.spot:
            instance.preempt(self._project.clock.now())
        elif instance.scheduling["onHostMaintenance"] == "TERMINATE":
            raise NotImplementedError("maintenance that ends instances is not known here")
        return self._begin(call, "simulateMaintenanceEvent", instance.path, instance.id)

    def _running(self, call: Call) -> Instance:
        instance = self._found(call)
        if instance.status != "RUNNING":
            message = f"The resource '{instance.path}' is not ready"
            raise GCPError("resourceNotReady", message, 400)
        return instance

    def _set_labels(self, call: Call) -> dict[str, Any]:
        instance, body = self._found(call), call.body or {}
        labels = body.get("labels", {})
        rules.check_labels(labels, "labels")
        record = instance.record
        check_fingerprint(body.get("labelFingerprint"), record["labelFingerprint"], "Labels")

        def end() -> None:
            record["labels"], record["labelFingerprint"] = labels, fingerprint(labels)

        return self._begin(call, "setLabels", instance.path, instance.id, end=end)

    def _set_metadata(self, call: Call) -> dict[str, Any]:
        instance, body = self._found(call), call.body or {}
        rules.check_metadata(body, "resource")
        current = instance.record["metadata"]
        check_fingerprint(body.get("fingerprint"), current["fingerprint"], "Metadata")
        items = body.get("items", [])

        def end() -> None:
            current.update(items=items, fingerprint=fingerprint(items))

        return self._begin(call, "setMetadata", instance.path, instance.id, end=end)

    def _serial(self, call: Call) -> dict[str, Any]:
        instance = self._found(call)
        port, start = call.asked_number("port", 1), call.asked_number("start", 0)
        text = instance.machine.console() if instance.machine and port == 1 else ""
        return {
            "kind": "compute#serialPortOutput",
            "selfLink": link(f"{instance.path}/serialPort"),
            "contents": text[start:],
            "start": str(start),
            "next": str(len(text)),
        }


def _in_use(kind: str, path: str, by: str) -> GCPError:
    message = f"The {kind} resource '{path}' is already being used by '{by}'"
    return GCPError("resourceInUseByAnotherResource", message, 400)


def _no_results(zone: str) -> dict[str, Any]:
    return {
        "warning": {
            "code": "NO_RESULTS_ON_PAGE",
            "message": f"There are no results for scope 'zones/{zone}' on this page.",
            "data": [{"key": "scope", "value": f"zones/{zone}"}],
        }
    }
