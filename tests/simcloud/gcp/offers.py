"""What Google offers, as callers of Compute Engine are told: zones, types, images, quotas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.gcp import catalogue, lists
from tests.simcloud.gcp.calls import Call
from tests.simcloud.gcp.project import NUMBER, PROJECT
from tests.simcloud.gcp.quotas import GLOBAL, Quotas
from tests.simcloud.gcp.store import Store, fingerprint, link
from tests.simcloud.gcp.wire import not_found


class Offers:
    """All methods that are known; each is called with the lock held."""

    def __init__(self, quotas: Quotas, store: Store) -> None:
        self._quotas = quotas
        self._store = store
        self.methods: Mapping[str, Callable[[Call], dict[str, Any]]] = {
            "acceleratorTypes.get": self._accelerator,
            "acceleratorTypes.list": self._accelerators,
            "images.get": self._image,
            "images.getFromFamily": self._family,
            "images.list": self._images,
            "machineTypes.get": self._type,
            "machineTypes.list": self._types,
            "projects.get": self._get_project,
            "regions.get": self._region,
            "regions.list": self._regions,
            "zones.get": self._zone,
            "zones.list": self._zones,
        }

    def _get_project(self, call: Call) -> dict[str, Any]:
        return {
            "kind": "compute#project",
            "id": NUMBER,
            "name": PROJECT,
            "creationTimestamp": "2026-01-01T00:00:00.000-08:00",
            "selfLink": link(f"projects/{PROJECT}"),
            "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": fingerprint([])},
            "defaultServiceAccount": f"{NUMBER}-compute@developer.gserviceaccount.com",
            "quotas": self._quotas.described(GLOBAL),
        }

    def _zone(self, call: Call) -> dict[str, Any]:
        return catalogue.describe_zone(call.places["zone"])

    def _zones(self, call: Call) -> dict[str, Any]:
        zones = [catalogue.describe_zone(zone) for zone in catalogue.ZONES]
        return lists.paged(call, "compute#zoneList", zones, f"projects/{PROJECT}/zones")

    def _region(self, call: Call) -> dict[str, Any]:
        return self._describe_region(call.places["region"])

    def _regions(self, call: Call) -> dict[str, Any]:
        found = [self._describe_region(each) for each in catalogue.regions()]
        return lists.paged(call, "compute#regionList", found, f"projects/{PROJECT}/regions")

    def _describe_region(self, name: str) -> dict[str, Any]:
        path = f"projects/{PROJECT}/regions/{name}"
        zones = [zone for zone in catalogue.ZONES if catalogue.region_of(zone) == name]
        return {
            "kind": "compute#region",
            "id": str(1000 + catalogue.regions().index(name)),
            "name": name,
            "description": name,
            "status": "UP",
            "zones": [link(f"projects/{PROJECT}/zones/{zone}") for zone in zones],
            "quotas": self._quotas.described(name),
            "selfLink": link(path),
        }

    def _type(self, call: Call) -> dict[str, Any]:
        zone, name = call.places["zone"], call.places["machineType"]
        found = catalogue.shape(name, zone)
        if found is None:
            raise not_found(f"projects/{PROJECT}/zones/{zone}/machineTypes/{name}")
        return catalogue.describe_shape(found, zone)

    def _types(self, call: Call) -> dict[str, Any]:
        zone = call.places["zone"]
        found = []
        for name in catalogue.names(zone):
            shape = catalogue.shape(name, zone)
            assert shape
            found.append(catalogue.describe_shape(shape, zone))
        path = f"projects/{PROJECT}/zones/{zone}/machineTypes"
        return lists.paged(call, "compute#machineTypeList", found, path)

    def _accelerator(self, call: Call) -> dict[str, Any]:
        zone, name = call.places["zone"], call.places["acceleratorType"]
        if zone not in catalogue.ACCELERATORS.get(name, ()):
            raise not_found(f"projects/{PROJECT}/zones/{zone}/acceleratorTypes/{name}")
        return catalogue.describe_accelerator(name, zone)

    def _accelerators(self, call: Call) -> dict[str, Any]:
        zone = call.places["zone"]
        names = [name for name, zones in catalogue.ACCELERATORS.items() if zone in zones]
        found = [catalogue.describe_accelerator(name, zone) for name in names]
        path = f"projects/{PROJECT}/zones/{zone}/acceleratorTypes"
        return lists.paged(call, "compute#acceleratorTypeList", found, path)

    def _image(self, call: Call) -> dict[str, Any]:
        path = f"projects/{call.places['project']}/global/images/{call.places['image']}"
        return self._store.get(path) if self._store.has(path) else _image(path)

    def _family(self, call: Call) -> dict[str, Any]:
        project, family = call.places["project"], call.places["family"]
        return _image(f"projects/{project}/global/images/family/{family}")

    def _images(self, call: Call) -> dict[str, Any]:
        project = call.places["project"]
        path = f"projects/{project}/global/images"
        own = self._store.of(f"projects/{project}/global", "images")
        found = [*catalogue.images(project), *own]
        return lists.paged(call, "compute#imageList", found, path)


def _image(path: str) -> dict[str, Any]:
    found = catalogue.image(path)
    if found is None:
        raise not_found(path)
    return found
