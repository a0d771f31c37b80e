"""Instances of scale sets as Azure tells of them; the machine of one is in its `life`.

Which instances there are to be does not belong here, see `scalesets`; nor what a machine can ask
about itself, see `metadata`.
"""

from __future__ import annotations

import base64
import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.simcloud.az.catalogue import Image
from tests.simcloud.az.network import address
from tests.simcloud.az.wire import ArmError
from tests.simcloud.common.life import Life, Lives, Phase
from tests.simcloud.machines.running import RunningMachine
from tests.simcloud.machines.spec import End, Endpoint, Login, MachineSpec

if TYPE_CHECKING:
    from tests.simcloud.az.scalesets import ScaleSet

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
DEALLOCATED = "deallocated"  # why one is stopped: Azure took it, or the machine stopped itself
STOPPED = "stopped"
_PROVISIONED = "var/lib/waagent/ovf-env.xml"
_addresses = itertools.count()


@dataclass
class Event:
    """Something that Azure is going to do to an instance, and says so inside of it."""

    kind: str
    not_before: float
    id: str = field(default_factory=lambda: str(uuid.uuid4()).upper())
    started: bool = False


class Instance:
    """An instance, and the machine that it has while it runs."""

    def __init__(self, scale_set: ScaleSet, number: int, lives: Lives) -> None:
        self.set = scale_set
        self.number = number
        self.model = scale_set.model_number
        self.profile: dict[str, Any] = scale_set.profile
        self.size = scale_set.size
        self.vm_id = str(uuid.uuid4())
        self.made = scale_set.parts.clock.today()
        self.failed: ArmError | None = None  # why it could not be made
        self.stopped = STOPPED
        self.times_down = 0
        self.image: Image | None = None  # that it was made from
        self.disk: Path | None = None  # what its image has beside what all have
        self.disk_size = 0  # GB
        self.event: Event | None = None
        self.evicted = 0.0  # when
        self.leaving = False  # it was told that it will be deleted
        self.protection: dict[str, bool] = {}  # from what is done to the whole scale set
        self.endpoints: tuple[Endpoint, ...] = ()
        self.hosts: dict[str, str] = {}
        self.certificates = b""
        self._serial = next(_addresses)
        # One that is nobody's: from the range for documents
        self._public = f"203.0.113.{self._serial % 250 + 1}"
        self.life = Life(lives, self)

    @property
    def id(self) -> str:
        """Of the resource; Azure writes the group in capitals here."""
        parts = self.set.resource.id.split("/")
        parts[4] = parts[4].upper()
        return "/".join([*parts, "virtualMachines", str(self.number)])

    @property
    def disk_id(self) -> str:
        """Of its disk, which is in the group of the scale set."""
        group = "/".join(self.id.split("/")[:5])
        own = f"{self.set.resource.name}_{self.name}_OsDisk_1_{self.vm_id.replace('-', '')}"
        return f"{group}/providers/Microsoft.Compute/disks/{own}"

    @property
    def name(self) -> str:
        return f"{self.set.resource.name}_{self.number}"

    @property
    def hostname(self) -> str:
        number, text = self.number, ""
        for _ in range(6):
            number, digit = divmod(number, 36)
            text = _DIGITS[digit] + text
        return str(self.profile["osProfile"]["computerNamePrefix"]) + text

    @property
    def spot(self) -> bool:
        return self.profile.get("priority") in ("Spot", "Low")

    @property
    def machine(self) -> RunningMachine | None:
        return self.life.machine

    @property
    def public_address(self) -> str:
        """Empty: it has none."""
        card = self.profile["networkProfile"]["networkInterfaceConfigurations"][0]
        first = card["properties"]["ipConfigurations"][0]["properties"]
        return self._public if first.get("publicIPAddressConfiguration") else ""

    @property
    def place(self) -> tuple[str, str]:
        """Its network, and its address there."""
        card = self.profile["networkProfile"]["networkInterfaceConfigurations"][0]
        subnet = card["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"]
        found = self.set.parts.resources.find(subnet)
        prefix = found.properties.get("addressPrefix") if found else None
        network = subnet.lower().partition("/subnets/")[0]
        return network, address(prefix or "10.0.0.0/16", self._serial)

    @property
    def custom_data(self) -> bytes:
        return base64.b64decode(self.profile["osProfile"].get("customData") or "")

    @property
    def gone(self) -> bool:
        return self.life.phase is Phase.GONE

    @property
    def state(self) -> str:
        """In a word: creating, running, stopped, deallocated, deleting, failed or gone."""
        if self.failed:
            return "gone" if self.gone else "failed"
        return {
            Phase.PENDING: "creating",
            Phase.RUNNING: "running",
            Phase.ENDING: "deleting",
            Phase.STOPPED: self.stopped,
            Phase.GONE: "gone",
        }[self.life.phase]

    # What its life asks and tells

    def spec(self, on_end: Callable[[RunningMachine], None]) -> MachineSpec:
        return MachineSpec(
            self.name,
            self.custom_data,
            self.endpoints,
            hosts=self.hosts,
            certificates=self.certificates,
            hostname=self.hostname.lower(),
            logins=self._logins(),
            disk=self.disk,
            files={_PROVISIONED: self._provisioning()},
            on_end=on_end,
        )

    def _provisioning(self) -> bytes:
        """What Azure's agent writes down of who the machine is and what it was told."""
        data = self.profile["osProfile"].get("customData") or ""
        user = self.profile["osProfile"]["adminUsername"]
        inner = f"<HostName>{self.hostname}</HostName><UserName>{user}</UserName>"
        return f"<Environment>{inner}<CustomData>{data}</CustomData></Environment>".encode()

    def _logins(self) -> tuple[Login, ...]:
        given = self.profile["osProfile"]
        ssh = (given.get("linuxConfiguration") or {}).get("ssh") or {}
        keys = tuple(str(key["keyData"]) for key in ssh.get("publicKeys") or [])
        return (Login(str(given["adminUsername"]), keys),)

    def afterwards(self, end: End | None) -> tuple[Phase, Any]:
        """Who powers itself off stays, and costs; whose computer breaks down is started again."""
        if end is None:
            return Phase.GONE, None
        return (Phase.STOPPED, STOPPED) if end is End.POWERED_OFF else (Phase.RUNNING, None)

    def moved(self, phase: Phase, why: Any) -> None:
        if phase in (Phase.STOPPED, Phase.GONE):
            self.times_down += 1
        if phase is Phase.STOPPED:
            self.stopped = why or self.stopped
        if phase is Phase.GONE:
            self.set.lost(self)

    # What callers are told

    @property
    def provisioning(self) -> str:
        if self.failed:
            return "Failed"
        ending = self.leaving or (self.life.phase is Phase.ENDING and not self.evicted)
        if ending:
            return "Deleting"
        return "Creating" if self.state == "creating" else "Succeeded"

    def content(self, view: bool) -> dict[str, Any]:
        os = {key: v for key, v in self.profile["osProfile"].items() if key in ("adminUsername",)}
        properties = {
            "latestModelApplied": self.model == self.set.model_number,
            "vmId": self.vm_id,
            "provisioningState": self.provisioning,
            "hardwareProfile": {"vmSize": self.size},
            "osProfile": {**os, "computerName": self.hostname},
            "storageProfile": self._storage(),
            "timeCreated": self.made.isoformat(),
        }
        if self.protection:
            properties["protectionPolicy"] = self.protection
        if view:
            properties["instanceView"] = self.view()
        return {
            "name": self.name,
            "id": self.id,
            "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
            "location": self.set.resource.location,
            "tags": self.set.resource.tags,
            "instanceId": str(self.number),
            "sku": {"name": self.size, "tier": "Standard"},
            "properties": properties,
        }

    def _storage(self) -> dict[str, Any]:
        given = self.profile["storageProfile"]
        managed = {**(given["osDisk"].get("managedDisk") or {}), "id": self.disk_id}
        disk = {
            "osType": "Linux",
            "name": self.disk_id.rpartition("/")[2],
            "createOption": "FromImage",
            "managedDisk": managed,
            "diskSizeGB": self.disk_size,
        }
        found = {"imageReference": given["imageReference"]}
        return found if self.failed else {**found, "osDisk": disk}

    def view(self) -> dict[str, Any]:
        word = self.provisioning.lower()
        first = {
            "code": f"ProvisioningState/{word}",
            "level": "Info",
            "displayStatus": f"Provisioning {word}",
            "time": self.made.isoformat(),
        }
        if self.failed:
            first["code"] += f"/{self.failed.code}"
            first["level"] = "Error"
            first["message"] = self.failed.message
        statuses = [first]
        power = self.state if self.state in ("running", STOPPED, DEALLOCATED) else ""
        if power:
            code, text = f"PowerState/{power}", f"VM {power}"
            statuses.append({"code": code, "level": "Info", "displayStatus": text})
        return {"statuses": statuses}
