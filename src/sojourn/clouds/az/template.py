"""How a machine of a task is made: the content of its scale set."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az import listing
from sojourn.clouds.az.account import version_of
from sojourn.clouds.az.machines import SMALLEST_DISK
from sojourn.clouds.az.on_machine.settings import Settings
from sojourn.clouds.az.placement import PlacementGroup, has_members, is_placed
from sojourn.clouds.az.profile import identities
from sojourn.clouds.az.resources import Identity, Network
from sojourn.clouds.az.store_address import for_machines, https_url
from sojourn.clouds.az.user_data import custom_data
from sojourn.clouds.vm import keys
from sojourn.clouds.vm.disks import disk_size
from sojourn.clouds.vm.machine_settings import machine_settings
from sojourn.clouds.vm.options import network_of
from sojourn.clouds.vm.paths import BOOT, PROBLEMS

if TYPE_CHECKING:
    from sojourn.clouds.az.machines import Image
    from sojourn.clouds.az.task_context import AzureContext

__all__ = ["SET", "SETTING", "content", "tags_path"]

SET = "Microsoft.Compute/virtualMachineScaleSets"
SETTING = "Microsoft.Insights/autoscaleSettings"
_SPOT_NOTICE = 30.0  # seconds, of an eviction
_NOTICE = "PT10M"  # to store the last of its work; a machine that is ready says so


def content(context: AzureContext) -> dict[str, Any]:
    """A scale set without machines."""
    wanted, offer = context.require_task(), context.offer
    given = identities(wanted.permission_set) or (Identity(context).path,)
    body: dict[str, Any] = {
        "location": context.location.region,
        "tags": {**context.tags, **listing.first_tags(wanted)},
        "sku": {"name": offer.size.name, "capacity": 0},
        "identity": {
            "type": "UserAssigned",
            "userAssignedIdentities": {each: {} for each in given},
        },
        "properties": {
            "orchestrationMode": "Uniform",
            "overprovision": False,
            "singlePlacementGroup": is_placed(wanted),
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": _machine(context, given[0]),
        },
    }
    if is_placed(wanted):
        near = {"id": PlacementGroup(context).path}
        body["properties"]["proximityPlacementGroup"] = near
    if offer.image.plan:
        body["plan"] = dict(offer.image.plan)
    return body


def tags_path(scale_set: str) -> str:
    """Where the tags of a scale set can be changed one by one."""
    return f"{scale_set}/providers/Microsoft.Resources/tags/default"


def _machine(context: AzureContext, identity: str) -> dict[str, Any]:
    machine: dict[str, Any] = {
        "osProfile": _system(context, identity),
        "storageProfile": _disk(context),
        "networkProfile": {"networkInterfaceConfigurations": [_card(context)]},
        "diagnosticsProfile": {"bootDiagnostics": {"enabled": True}},  # the console, kept by Azure
        "scheduledEventsProfile": {
            "terminateNotificationProfile": {"enable": True, "notBeforeTimeout": _NOTICE}
        },
    }
    spot = context.require_task().spot
    if spot >= 0:
        price = spot if spot > 0 else -1
        machine |= {
            "priority": "Spot",
            "evictionPolicy": "Delete",
            "billingProfile": {"maxPrice": price},
        }
    return machine


def _system(context: AzureContext, identity: str) -> dict[str, Any]:
    user = context.offer.image.name.user
    pair = keys.make_key_pair(context.store(), context.id)
    key = {"path": f"/home/{user}/.ssh/authorized_keys", "keyData": pair.public}
    return {
        "computerNamePrefix": context.name,
        "adminUsername": user,
        "customData": _first_script(context, identity),
        "linuxConfiguration": {
            "disablePasswordAuthentication": True,
            "ssh": {"publicKeys": [key]},
        },
    }


def _disk(context: AzureContext) -> dict[str, Any]:
    image = context.offer.image
    size = disk_size(context.require_task(), max(image.size, SMALLEST_DISK))
    kind = "Premium_LRS" if context.offer.size.premium else "StandardSSD_LRS"
    disk: dict[str, Any] = {
        "createOption": "FromImage",
        "caching": "ReadWrite",
        "managedDisk": {"storageAccountType": kind},
    }
    if size > 0:
        disk["diskSizeGB"] = size
    return {"imageReference": _reference(image), "osDisk": disk}


def _reference(image: Image) -> dict[str, str]:
    if image.id:
        return {"id": image.id}
    name = image.name
    return {
        "publisher": name.publisher,
        "offer": name.offer,
        "sku": name.sku,
        "version": name.version,
    }


def _card(context: AzureContext) -> dict[str, Any]:
    network = Network(context)
    address: dict[str, Any] = {"subnet": {"id": network.subnet}}
    if not network_of(context.require_task()).private:
        address["publicIPAddressConfiguration"] = {"name": "public"}  # to reach the world by
    if has_members(context.require_task()):
        address["applicationSecurityGroups"] = [{"id": network.members}]
    configuration = {"name": "first", "properties": address}
    return {
        "name": "card",
        "properties": {
            "primary": True,
            "ipConfigurations": [configuration],
            "networkSecurityGroup": {"id": network.firewall},
        },
    }


def _first_script(context: AzureContext, identity: str) -> str:
    location, wanted = context.location, context.require_task()
    scale_set, setting = context.path(SET), context.path(SETTING)
    tags = tags_path(scale_set)
    settings = Settings(
        machine_settings(
            context.name,
            for_machines(location, identity),
            wanted,
            user=context.offer.image.name.user,
            marks=listing.can_mark(wanted),
            page="docs/azure.md",
            wheels=context.luggage().hashes,
            notice=_SPOT_NOTICE if wanted.spot >= 0 else 0.0,
        ),
        boot=https_url(location, BOOT),
        problems=https_url(location, PROBLEMS),
        identity=identity,
        ranks=wanted.parallelism,
        set=scale_set,
        setting=f"{setting}?api-version={version_of(setting)}",
        tags=f"{tags}?api-version={version_of(tags)}",
        compute=version_of(scale_set),
    )
    return base64.b64encode(custom_data(settings).encode()).decode()
