"""Instance properties, as templates have them: whether Google would take them.

Whether there is room for the instance does not belong here, see `market`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.simcloud.gcp import catalogue, rules
from tests.simcloud.gcp.market import LaunchRefusedError
from tests.simcloud.gcp.operations import Failure
from tests.simcloud.gcp.project import Project
from tests.simcloud.gcp.store import Store, overall, path_of
from tests.simcloud.gcp.wire import GCPError, invalid

_FIELD = "resource.properties"
_DISK_TYPES = ("pd-standard", "pd-balanced", "pd-ssd", "pd-extreme", "hyperdisk-balanced")
_LARGEST_DISK = 65536


def check(given: Mapping[str, Any], project: Project, store: Store) -> None:
    """What is wrong wherever the instance would be."""
    if not given.get("machineType"):
        raise GCPError("required", f"Required field '{_FIELD}.machineType' not specified", 400)
    if "/" in given["machineType"]:
        raise invalid(f"{_FIELD}.machineType", given["machineType"], "Must be a name, not a URL.")
    rules.check_labels(given.get("labels", {}), f"{_FIELD}.labels")
    rules.check_metadata(given.get("metadata", {}), f"{_FIELD}.metadata")
    rules.check_tags(given.get("tags", {}), f"{_FIELD}.tags")
    gpus = given.get("guestAccelerators", [])
    builtin = given["machineType"].partition("-")[0] in ("a2", "a3", "g2")
    with_gpus = builtin or bool(gpus)
    rules.check_scheduling(given.get("scheduling", {}), with_gpus, f"{_FIELD}.scheduling")
    _check_disks(given.get("disks", []), store)
    _check_interfaces(given.get("networkInterfaces", []), store)
    _check_gpus(given["machineType"], gpus)
    accounts = given.get("serviceAccounts", [])
    if len(accounts) > 1:
        raise invalid(f"{_FIELD}.serviceAccounts", len(accounts), "At most one can be specified.")
    for account in accounts:
        if not account.get("email"):
            raise invalid(f"{_FIELD}.serviceAccounts[0].email", "", "It must be specified.")
        if not account.get("scopes"):
            raise invalid(f"{_FIELD}.serviceAccounts[0].scopes", "", "They must be specified.")
        if not project.accounts.knows(account["email"]):
            message = f"The resource '{account['email']}' of type 'serviceAccount' was not found."
            raise GCPError("invalid", message, 400)


def check_in_zone(given: Mapping[str, Any], zone: str, store: Store, project: Project) -> None:
    """What is wrong in a zone, which shows when an instance is created there."""
    name = given["machineType"]
    shape = catalogue.shape(name, zone)
    if shape is None:
        raise _refused(
            "INVALID_FIELD_VALUE",
            f"Invalid value for field 'resource.machineType': "
            f"'zones/{zone}/machineTypes/{name}'. The referenced resource does not exist.",
        )
    for gpu in given.get("guestAccelerators", []):
        kind = gpu["acceleratorType"].rpartition("/")[2]
        if zone not in catalogue.ACCELERATORS.get(kind, ()):
            raise _refused(
                "RESOURCE_NOT_FOUND",
                f"The resource 'projects/{project.itself.name.partition('/')[2]}/zones/{zone}/"
                f"acceleratorTypes/{kind}' was not found",
            )
    image = boot_image(given, store)
    if image["status"] != "READY":
        raise _refused("RESOURCE_NOT_READY", f"The image {image['name']} is not ready.")
    if image["architecture"] != shape.architecture:
        raise _refused(
            "INVALID_FIELD_VALUE",
            f"The architecture {image['architecture']} of the image is not that of the machine "
            f"type, {shape.architecture}.",
        )
    for account in given.get("serviceAccounts", []):
        if not project.accounts.knows(account["email"]):
            message = f"The service account '{account['email']}' was not found."
            raise _refused("RESOURCE_NOT_FOUND", message)


def boot_image(given: Mapping[str, Any], store: Store) -> dict[str, Any]:
    """The image of the boot disk."""
    boot = next(disk for disk in given["disks"] if disk.get("boot"))
    found = image_at(path_of(boot["initializeParams"]["sourceImage"]), store)
    assert found, "it was checked before"
    return found


def image_at(path: str, store: Store) -> dict[str, Any] | None:
    """One of the project, or a public one."""
    return store.get(path) if store.has(path) else catalogue.image(path)


def _check_disks(disks: list[dict[str, Any]], store: Store) -> None:
    boots = [disk for disk in disks if disk.get("boot")]
    if len(boots) != 1:
        raise invalid(f"{_FIELD}.disks", len(boots), "One boot disk must be specified.")
    for index, disk in enumerate(disks):
        field = f"{_FIELD}.disks[{index}].initializeParams"
        params = disk.get("initializeParams", {})
        source = params.get("sourceImage", "")
        image = image_at(path_of(source), store) if source else None
        if disk.get("boot") and image is None:
            message = "The referenced image resource cannot be found."
            raise invalid(f"{field}.sourceImage", source, message)
        size = int(params.get("diskSizeGb", image["diskSizeGb"] if image else 500))
        least = int(image["diskSizeGb"]) if image else 10
        if size < least:
            message = (
                f"Requested disk size cannot be smaller than the image size ({least} GB)"
                if image
                else "Must be at least 10 GB."
            )
            raise invalid(f"{field}.diskSizeGb", size, message)
        if size > _LARGEST_DISK:
            raise invalid(f"{field}.diskSizeGb", size, f"Must be at most {_LARGEST_DISK} GB.")
        kind = params.get("diskType", "pd-standard")
        if "/" in kind or kind not in _DISK_TYPES:
            raise invalid(f"{field}.diskType", kind, "Must be the name of a disk type.")
        rules.check_labels(params.get("labels", {}), f"{field}.labels")


def _check_interfaces(interfaces: list[dict[str, Any]], store: Store) -> None:
    if not interfaces:
        raise invalid(f"{_FIELD}.networkInterfaces", "", "At least one must be specified.")
    for interface in interfaces:
        if "networkIP" in interface:
            raise NotImplementedError("templates with an address are not known here")
        network = path_of(interface.get("network", overall("networks", "default")))
        if "subnetwork" in interface:
            store.used(path_of(interface["subnetwork"]), "subnetwork")
        else:
            found = store.used(network, "network")
            if not found.get("autoCreateSubnetworks", False):
                message = "Subnetwork must be specified, as the network has custom subnets."
                raise invalid(f"{_FIELD}.networkInterfaces[0].subnetwork", "", message)


def _check_gpus(machine: str, gpus: list[dict[str, Any]]) -> None:
    for gpu in gpus:
        kind, count = gpu.get("acceleratorType", ""), gpu.get("acceleratorCount", 0)
        name = kind.rpartition("/")[2]
        field = f"{_FIELD}.guestAccelerators[0]"
        if name not in catalogue.ACCELERATORS:
            message = f"The accelerator type {name} was not found."
            raise invalid(f"{field}.acceleratorType", kind, message)
        if not machine.startswith(("n1-", "custom-")):
            message = f"[{machine}, {name}] features are not compatible for creating instance."
            raise GCPError("badRequest", message, 400)
        if count not in catalogue.COUNTS.get(name, ()):
            message = f"The number of {name} must be one of {catalogue.COUNTS.get(name, ())}."
            raise invalid(f"{field}.acceleratorCount", count, message)


def _refused(code: str, message: str) -> LaunchRefusedError:
    return LaunchRefusedError(Failure(code, message))
