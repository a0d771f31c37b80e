"""Which permissions calls to Compute Engine need, and on what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.catalogue import PUBLIC
from tests.simcloud.gcp.policies import Resource
from tests.simcloud.gcp.project import PROJECT, Project
from tests.simcloud.gcp.store import Store, overall, path_of, zonal

Needs = Iterator[tuple[str, Resource]]

# Types whose names conditions see, see "Resource attributes for IAM Conditions"
_NAMED = {
    "disks": "Disk",
    "firewalls": "Firewall",
    "images": "Image",
    "instanceTemplates": "InstanceTemplate",
    "instances": "Instance",
}
_VERBS = {
    "abandonInstances": "update",
    "aggregatedList": "list",
    "deleteInstances": "update",
    "insert": "create",
    "listErrors": "get",
    "listManagedInstances": "get",
    "patch": "update",
    "recreateInstances": "update",
    "resize": "update",
    "wait": "get",
}


def of_compute(call: Call, project: Project, store: Store) -> Needs:
    """All, the first one for the thing itself."""
    collection, _, verb = call.operation.partition(".")
    if collection == "images" and call.places["project"] in PUBLIC:
        return  # everybody may use them
    itself = _resource(call, project, collection)
    yield f"compute.{collection}.{_VERBS.get(verb, verb)}", itself
    if call.name in ("compute:firewalls.insert", "compute:firewalls.delete"):
        yield "compute.networks.updatePolicy", _network(call, project, store, itself)
    if call.name == "compute:images.insert":
        yield from _of_new_image(call, project, itself)
    if call.name == "compute:instanceTemplates.insert":
        yield from _acting(project, (call.body or {}).get("properties", {}))
    if call.name == "compute:instanceGroupManagers.insert":
        yield from _of_new_group(call, project, store)
    if call.name == "compute:instanceGroupManagers.delete":
        zone, name = call.places["zone"], call.places["instanceGroupManager"]
        yield "compute.instanceGroups.delete", Resource(zonal(zone, "instanceGroups", name))
        yield "compute.instances.delete", project.itself


def _resource(call: Call, project: Project, collection: str) -> Resource:
    """The record that a call is about, or the project for calls about many."""
    places = dict(call.places)
    assert call.method
    if places["project"] != PROJECT and collection != "images":
        return Resource(f"projects/{places['project']}", said=f"projects/{places['project']}")
    path = call.method.spec["path"].format(**places)
    verb = call.operation.partition(".")[2]
    if verb in ("list", "aggregatedList"):
        return project.itself
    if verb == "insert":
        path += f"/{(call.body or {}).get('name', '')}"
    elif path.endswith(f"/{verb}"):
        path = path.removesuffix(f"/{verb}")
    return named(project, path)


def named(project: Project, path: str) -> Resource:
    """A resource of Compute Engine as conditions see it."""
    if path == f"projects/{PROJECT}":
        return project.itself
    collection = path.rsplit("/", 2)[1]
    kind = _NAMED.get(collection, "")
    by_name = collection == "instanceGroupManagers" and project.groups_have_names
    return Resource(path, f"compute.googleapis.com/{kind}" if kind or by_name else "")


def _network(call: Call, project: Project, store: Store, itself: Resource) -> Resource:
    if call.operation == "firewalls.insert":
        given = (call.body or {}).get("network") or overall("networks", "default")
    else:
        given = store.get(itself.name)["network"] if store.has(itself.name) else itself.name
    return Resource(path_of(given))


def _of_new_group(call: Call, project: Project, store: Store) -> Needs:
    """A group makes instances, so who makes it must be able to make such instances."""
    body, zone = call.body or {}, call.places["zone"]
    name = str(body.get("name", ""))
    yield "compute.instanceGroups.create", Resource(zonal(zone, "instanceGroups", name))
    template = path_of(str(body.get("instanceTemplate", "")))
    yield "compute.instanceTemplates.useReadOnly", named(project, template)
    if not store.has(template):
        return
    properties = store.get(template)["properties"]
    yield from ((permission, project.itself) for permission in _to_create(properties))
    yield from _own_images(project, properties)
    yield from _acting(project, properties)


def _of_new_image(call: Call, project: Project, itself: Resource) -> Needs:
    body = call.body or {}
    yield "compute.disks.useReadOnly", named(project, path_of(str(body.get("sourceDisk", ""))))
    if body.get("labels"):
        yield "compute.images.setLabels", itself


def _own_images(project: Project, properties: dict[str, Any]) -> Needs:
    for disk in properties.get("disks", []):
        path = path_of(str(disk.get("initializeParams", {}).get("sourceImage", "")))
        if path.startswith(f"projects/{PROJECT}/"):
            yield "compute.images.useReadOnly", named(project, path)


def _to_create(properties: dict[str, Any]) -> Iterator[str]:
    yield "compute.instances.create"
    yield "compute.disks.create"
    for field, permission in (
        ("metadata", "compute.instances.setMetadata"),
        ("labels", "compute.instances.setLabels"),
        ("tags", "compute.instances.setTags"),
        ("serviceAccounts", "compute.instances.setServiceAccount"),
    ):
        if properties.get(field):
            yield permission
    yield "compute.subnetworks.use"
    for interface in properties.get("networkInterfaces", []):
        if interface.get("accessConfigs"):
            yield "compute.subnetworks.useExternalIp"
    if any(d.get("initializeParams", {}).get("labels") for d in properties.get("disks", [])):
        yield "compute.disks.setLabels"


def _acting(project: Project, properties: dict[str, Any]) -> Needs:
    for given in properties.get("serviceAccounts", []) if isinstance(properties, dict) else []:
        email = str(given.get("email", ""))
        found = project.accounts.find(email)
        name = f"projects/-/serviceAccounts/{email}"
        if found:
            yield "iam.serviceAccounts.actAs", Resource(name, policies=(found.policy,))
