"""Instances of Compute Engine, with their machines and disks.

Which instances there are to be does not belong here, see `scaler`; nor what a machine can ask about
itself, see `metadata`.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.simcloud.common.life import Life, Lives, Phase
from tests.simcloud.gcp import boot
from tests.simcloud.gcp.catalogue import region_of
from tests.simcloud.gcp.project import PROJECT, Project, new_id, timestamp
from tests.simcloud.gcp.properties import boot_image
from tests.simcloud.gcp.store import Store, fingerprint, link, overall, path_of, regional, zonal
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, Endpoint, MachineSpec

_STATUS = {
    Phase.PENDING: "PROVISIONING",
    Phase.RUNNING: "RUNNING",
    Phase.ENDING: "STOPPING",
    Phase.STOPPED: "TERMINATED",
    Phase.GONE: "",
}
_addresses = itertools.count(2)


class Instance:
    """An instance and the machine that it has while it runs."""

    def __init__(
        self, project: Project, zone: str, name: str, record: dict[str, Any], group: str
    ) -> None:
        self._project = project
        self.zone = zone
        self.name = name
        self.record = record  # as callers see it
        self.group = group
        self.life: Life | None = None
        self.endpoints: tuple[Endpoint, ...] = ()
        self.preempted = False  # as the metadata server says
        self.maintenance = "NONE"  # what the metadata server says of it
        self.button_at: float | None = None  # when it is told to shut down
        self.stops_at: float | None = None  # when its time is over
        self.gone = False
        self.disk: Path | None = None  # what its image has beside what all have

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def path(self) -> str:
        return zonal(self.zone, "instances", self.name)

    @property
    def status(self) -> str:
        return str(self.record["status"])

    @property
    def state(self) -> str:
        """The same in lower case, as accounts of other clouds have it; empty: it is gone."""
        return "" if self.gone else self.status.lower()

    @property
    def scheduling(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.record["scheduling"]
        return found

    @property
    def spot(self) -> bool:
        return bool(self.scheduling.get("preemptible"))

    @property
    def machine(self) -> RunningMachine | None:
        return self.life.machine if self.life else None

    @property
    def public_address(self) -> str:
        """Empty: it has none."""
        for interface in self.record["networkInterfaces"]:
            for access in interface.get("accessConfigs", []):
                return str(access["natIP"])
        return ""

    @property
    def place(self) -> tuple[str, str]:
        """Its network, and its address there."""
        first = self.record["networkInterfaces"][0]
        return path_of(first["network"]), str(first["networkIP"])

    @property
    def email(self) -> str:
        accounts = self.record.get("serviceAccounts", [])
        return str(accounts[0]["email"]) if accounts else ""

    def attribute(self, key: str) -> str | None:
        for item in self.record["metadata"].get("items", []):
            if item["key"] == key:
                return str(item["value"])
        return None

    def preempt(self, now: float) -> None:
        """Tell it that it goes; the power button follows, at once unless it asks for more time."""
        self.preempted = True
        told = self.scheduling.get("preemptionNoticeDuration", {}).get("seconds", 0)
        self.button_at = now + int(told)

    # What its life asks and tells

    def spec(self, on_end: Callable[[RunningMachine], None]) -> MachineSpec:
        return MachineSpec(
            f"{self.name}.{self.id}",
            boot.SCRIPT,
            self.endpoints,
            hosts={"metadata.google.internal": boot.ADDRESS, "metadata": boot.ADDRESS},
            hostname=self.name,
            logins=boot.logins(self.attribute),
            disk=self.disk,
            every_boot=True,
            on_end=on_end,
        )

    def afterwards(self, end: End | None) -> tuple[Phase, None]:
        """A machine that crashes is restarted if it is to be; one that powers off is stopped."""
        if end is End.RESTARTED:
            return Phase.RUNNING, None
        crashed = end is not None and end is not End.POWERED_OFF
        if crashed and self.scheduling.get("automaticRestart"):
            return Phase.RUNNING, None
        return Phase.STOPPED, None

    def moved(self, phase: Phase, why: Any) -> None:
        self.record["status"] = _STATUS[phase] or self.record["status"]
        now = timestamp(self._project.clock)
        if phase is Phase.RUNNING:
            self.record["lastStartTimestamp"] = now
            limit = self.scheduling.get("maxRunDuration")
            if limit:
                self.stops_at = self._project.clock.now() + int(limit["seconds"])
        elif phase is Phase.STOPPED:
            self.record["lastStopTimestamp"] = now
            self.button_at = self.stops_at = None
        elif phase is Phase.GONE:
            self.gone = True


class Fleet:
    """All instances of the project. Each change of one is made with the lock held."""

    def __init__(
        self,
        project: Project,
        store: Store,
        lives: Lives,
        endpoints: Callable[[Instance], tuple[Endpoint, ...]],
    ) -> None:
        self._project = project
        self._store = store
        self._lives = lives
        self._endpoints = endpoints
        self.instances: list[Instance] = []  # all that there ever were
        self.captured: dict[str, Path] = {}  # what images have, by their paths

    def create(
        self, zone: str, name: str, properties: Mapping[str, Any], group: str, created_by: str
    ) -> Instance:
        """Make an instance by the properties of a template, which were checked."""
        record = self._record(zone, name, properties, created_by)
        instance = Instance(self._project, zone, name, record, group)
        instance.endpoints = self._endpoints(instance)
        instance.disk = self.captured.get(path_of(boot_image(properties, self._store)["selfLink"]))
        instance.life = Life(self._lives, instance)
        self._store.add(instance.path, record)
        self.instances.append(instance)
        instance.life.boot(self._project.timing.launch)
        return instance

    def capture(self, instance: Instance, image: str) -> None:
        """Keep what is on its disk now for an image; without machines, there is nothing."""
        if self._lives.host and instance.machine:
            self.captured[image] = self._lives.host.capture(instance.machine)

    def find(self, path: str) -> Instance | None:
        """The one that has this path now."""
        for instance in reversed(self.instances):
            if instance.path == path:
                return None if instance.gone else instance
        return None

    def delete(self, instance: Instance) -> None:
        """As on a call: it is asked to shut down, and killed if it does not."""
        self._end(instance, self._project.timing.shutdown, Phase.GONE)

    def stop(self, instance: Instance, within: float) -> None:
        self._end(instance, within, Phase.STOPPED)

    def settle_gone(self) -> None:
        """Take those that are gone out of the store, with their disks."""
        for instance in self.instances:
            if instance.gone and self._is_current(instance):
                self._store.remove(instance.path)
                for disk in instance.record["disks"]:
                    if disk.get("autoDelete"):
                        self._store.remove(path_of(disk["source"]))

    def _is_current(self, instance: Instance) -> bool:
        path = instance.path
        return self._store.has(path) and self._store.get(path) is instance.record

    def _end(self, instance: Instance, within: float, then: Phase) -> None:
        assert instance.life
        instance.life.end(within, then=then)

    def _record(
        self, zone: str, name: str, given: Mapping[str, Any], created_by: str
    ) -> dict[str, Any]:
        metadata = copy.deepcopy(given.get("metadata", {}))
        items = metadata.get("items", [])
        items += [{"key": "created-by", "value": created_by}] if created_by else []
        labels = dict(given.get("labels", {}))
        number = next(_addresses)
        place = f"projects/{PROJECT}/zones/{zone}"
        record: dict[str, Any] = {
            "kind": "compute#instance",
            "id": new_id(),
            "creationTimestamp": timestamp(self._project.clock),
            "name": name,
            "zone": link(place),
            "machineType": link(f"{place}/machineTypes/{given['machineType']}"),
            "status": "PROVISIONING",
            "cpuPlatform": "Intel Broadwell",
            "canIpForward": False,
            "deletionProtection": False,
            "startRestricted": False,
            "labels": labels,
            "labelFingerprint": fingerprint(labels),
            "metadata": {
                "kind": "compute#metadata",
                "items": items,
                "fingerprint": fingerprint(items),
            },
            "tags": {
                "items": given.get("tags", {}).get("items", []),
                "fingerprint": fingerprint(given.get("tags", {})),
            },
            "scheduling": _scheduling(given.get("scheduling", {})),
            "disks": self._disks(zone, name, given),
            "networkInterfaces": _interfaces(region_of(zone), given, number),
            "selfLink": link(zonal(zone, "instances", name)),
            "fingerprint": fingerprint([name, number]),
        }
        if given.get("serviceAccounts"):
            record["serviceAccounts"] = copy.deepcopy(given["serviceAccounts"])
        if given.get("guestAccelerators"):
            record["guestAccelerators"] = [
                {
                    **each,
                    "acceleratorType": link(
                        f"{place}/acceleratorTypes/{each['acceleratorType'].rpartition('/')[2]}"
                    ),
                }
                for each in given["guestAccelerators"]
            ]
        return record

    def _disks(self, zone: str, name: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        disks = []
        for index, disk in enumerate(given["disks"]):
            params = disk.get("initializeParams", {})
            own = name if disk.get("boot") else f"{name}-{index}"
            path = zonal(zone, "disks", own)
            default = boot_image(given, self._store)["diskSizeGb"] if disk.get("boot") else "500"
            size = str(params.get("diskSizeGb", default))
            kind = params.get("diskType", "pd-standard")
            labels = params.get("labels", {})
            self._store.add(
                path,
                {
                    "kind": "compute#disk",
                    "id": new_id(),
                    "creationTimestamp": timestamp(self._project.clock),
                    "name": own,
                    "sizeGb": size,
                    "zone": link(f"projects/{PROJECT}/zones/{zone}"),
                    "status": "READY",
                    "type": link(f"projects/{PROJECT}/zones/{zone}/diskTypes/{kind}"),
                    "labels": labels,
                    "labelFingerprint": fingerprint(labels),
                    "users": [link(zonal(zone, "instances", name))],
                    "selfLink": link(path),
                },
            )
            disks.append(
                {
                    "kind": "compute#attachedDisk",
                    "type": "PERSISTENT",
                    "mode": "READ_WRITE",
                    "source": link(path),
                    "deviceName": disk.get("deviceName", f"persistent-disk-{index}"),
                    "index": index,
                    "boot": bool(disk.get("boot")),
                    "autoDelete": bool(disk.get("autoDelete", False)),
                    "interface": "SCSI",
                    "diskSizeGb": size,
                }
            )
        return disks


def _scheduling(given: Mapping[str, Any]) -> dict[str, Any]:
    """With the defaults, as it is told."""
    spot = given.get("provisioningModel") == "SPOT" or bool(given.get("preemptible"))
    return {
        **given,
        "provisioningModel": given.get("provisioningModel", "STANDARD"),
        "preemptible": spot,
        "automaticRestart": given.get("automaticRestart", not spot),
        "onHostMaintenance": given.get("onHostMaintenance", "TERMINATE" if spot else "MIGRATE"),
    }


def _interfaces(region: str, given: Mapping[str, Any], number: int) -> list[dict[str, Any]]:
    found = []
    for index, interface in enumerate(given.get("networkInterfaces", [])):
        network = path_of(interface.get("network", overall("networks", "default")))
        subnet = interface.get("subnetwork", regional(region, "subnetworks", "default"))
        shown: dict[str, Any] = {
            "kind": "compute#networkInterface",
            "name": f"nic{index}",
            "network": link(network),
            "subnetwork": link(path_of(subnet)),
            "networkIP": f"10.{128 + index}.{number // 250}.{number % 250 + 1}",
            "stackType": "IPV4_ONLY",
            "fingerprint": fingerprint([network, subnet]),
        }
        if interface.get("accessConfigs"):
            shown["accessConfigs"] = [
                {
                    "kind": "compute#accessConfig",
                    "type": "ONE_TO_ONE_NAT",
                    "name": each.get("name", "External NAT"),
                    "networkTier": each.get("networkTier", "PREMIUM"),
                    "natIP": f"203.0.113.{number % 250 + 1}",
                }
                for each in interface["accessConfigs"]
            ]
        found.append(shown)
    return found
