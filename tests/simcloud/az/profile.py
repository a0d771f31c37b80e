"""What has to fit together in a scale set, and no package of Azure knows."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.simcloud.az.catalogue import SIZES, Image, Size
from tests.simcloud.az.wire import ArmError

CUSTOM_DATA = 87380  # characters of base64, which are 65535 bytes
_USERS = ("1", "admin", "administrator", "backup", "console", "guest", "root", "test", "user")
_FIXED = (
    "priority",
    "evictionPolicy",
    "osProfile.computerNamePrefix",
    "osProfile.adminUsername",
    "osProfile.linuxConfiguration.ssh",
)
_UNKNOWN = (
    "applicationProfile",
    "capacityReservation",
    "extensionProfile",
    "hardwareProfile",
    "securityProfile",
)


ImageOf = Callable[[Mapping[str, Any]], Image | None]
"""The image that a reference names; None: there is none."""


def check(body: Mapping[str, Any], accepted: set[str], image_of: ImageOf) -> None:
    """Refuse a scale set that can never be; `accepted` are the plans whose terms were."""
    properties = body.get("properties") or {}
    if properties.get("orchestrationMode") not in (None, "Uniform"):
        raise NotImplementedError("only scale sets of orchestration mode Uniform are known here")
    if not (properties.get("upgradePolicy") or {}).get("mode"):
        raise _missing("upgradePolicy")
    if not (body.get("sku") or {}).get("name"):
        raise _missing("sku.name")
    size = SIZES.get(body["sku"]["name"])
    profile = properties.get("virtualMachineProfile")
    if not profile:
        raise _missing("virtualMachineProfile")
    if any(profile.get(name) for name in _UNKNOWN):
        raise NotImplementedError(f"{_UNKNOWN} of scale sets are not known here")
    check_capacity(body)
    _check_notice(profile.get("scheduledEventsProfile") or {})
    _check_repairs(properties)
    _check_priority(properties, profile, size)
    _check_os(profile.get("osProfile"))
    image = _check_storage(profile.get("storageProfile"), size, image_of)
    _check_plan(body.get("plan"), image, accepted)
    _check_network(profile.get("networkProfile"))


def check_capacity(body: Mapping[str, Any]) -> None:
    capacity = body["sku"].get("capacity")
    single = (body.get("properties") or {}).get("singlePlacementGroup", True)
    most = 100 if single else 1000
    if not isinstance(capacity, int) or not 0 <= capacity <= most:
        text = f"The value of parameter sku.capacity is invalid: from 0 to {most}."
        raise ArmError(400, "InvalidParameter", text, target="sku.capacity")


def check_change(former: Any, properties: dict[str, Any]) -> None:
    """What a scale set that exists can become; data that is left out stays what it was."""
    old, new = former.profile, properties["virtualMachineProfile"]
    os = new["osProfile"]
    if "customData" in old["osProfile"]:
        os.setdefault("customData", old["osProfile"]["customData"])
    for path in _FIXED:
        before, after = (_at(each, path) for each in (old, new))
        if before != after:
            text = f"Changing property '{path}' is not allowed."
            raise ArmError(409, "PropertyChangeNotAllowed", text, target=path)
    if new != old and former.instances and properties["upgradePolicy"]["mode"] != "Manual":
        raise NotImplementedError("only upgrades by hand are known here")


def _at(value: Mapping[str, Any], path: str) -> Any:
    found: Any = value
    for part in path.split("."):
        found = (found or {}).get(part)
    return found


def spot(properties: Mapping[str, Any]) -> bool:
    return properties["virtualMachineProfile"].get("priority") in ("Spot", "Low")


def max_price(profile: Mapping[str, Any]) -> float:
    return float((profile.get("billingProfile") or {}).get("maxPrice", -1))


def _check_repairs(properties: Mapping[str, Any]) -> None:
    if (properties.get("automaticRepairsPolicy") or {}).get("enabled"):
        raise ArmError(
            400,
            "InvalidParameter",
            "Automatic repairs not supported for this Virtual Machine Scale Set because a health "
            "probe or health extension was not specified.",
            target="automaticRepairsPolicy",
        )


def _check_notice(given: Mapping[str, Any]) -> None:
    if given.keys() - {"terminateNotificationProfile"}:
        raise NotImplementedError(f"{given.keys()} of scheduled events are not known here")
    notice = (given.get("terminateNotificationProfile") or {}).get("notBeforeTimeout")
    if notice and notice not in [f"PT{minutes}M" for minutes in range(5, 16)]:
        text = "The value of parameter notBeforeTimeout is invalid: from PT5M to PT15M."
        raise ArmError(400, "InvalidParameter", text, target="notBeforeTimeout")


def _check_priority(
    properties: Mapping[str, Any], profile: Mapping[str, Any], size: Size | None
) -> None:
    if not spot(properties):
        for name, given in (
            ("evictionPolicy", profile.get("evictionPolicy")),
            ("billingProfile", profile.get("billingProfile")),
            ("spotRestorePolicy", properties.get("spotRestorePolicy")),
        ):
            if given is not None:
                text = f"{name} is supported only for Azure Spot Virtual Machine Scale Sets."
                raise ArmError(400, "InvalidParameter", text, target=name)
        return
    if size and not size.spot:
        text = f"The VM size {size.name} is not supported for Azure Spot Virtual Machines."
        raise ArmError(400, "InvalidParameter", text, target="vmSize")
    price = max_price(profile)
    if price != -1 and (price <= 0 or round(price, 5) != price):
        text = "maxPrice has to be -1, or greater than 0 with at most 5 decimal places."
        raise ArmError(400, "InvalidParameter", text, target="billingProfile.maxPrice")
    restore = (properties.get("spotRestorePolicy") or {}).get("restoreTimeout")
    if restore and not re.fullmatch(r"P(?=.)(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?", restore):
        text = "The value of parameter spotRestorePolicy is invalid."
        raise ArmError(400, "InvalidParameter", text, target="spotRestorePolicy")


def _check_os(given: Mapping[str, Any] | None) -> None:
    if not given:
        raise _missing("osProfile")
    prefix, user = given.get("computerNamePrefix") or "", given.get("adminUsername") or ""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,57}", prefix):
        text = "Computer name prefix has to be 1 to 58 letters, digits and hyphens."
        raise ArmError(400, "InvalidParameter", text, target="computerNamePrefix")
    if user.lower() in _USERS or not re.fullmatch(r"[a-z_][a-z0-9_-]{0,63}", user):
        text = "The Admin Username specified is not allowed."
        raise ArmError(400, "InvalidParameter", text, target="adminUsername")
    linux = given.get("linuxConfiguration") or {}
    keys = (linux.get("ssh") or {}).get("publicKeys") or []
    if linux.get("disablePasswordAuthentication"):
        if not keys:
            raise _missing("linuxConfiguration.ssh.publicKeys")
    elif not given.get("adminPassword"):
        raise _missing("adminPassword")
    for key in keys:
        _check_key(key, user)
    _check_data(given.get("customData"))


def _check_key(key: Mapping[str, Any], user: str) -> None:
    if key.get("path") != f"/home/{user}/.ssh/authorized_keys":
        raise ArmError(
            400,
            "InvalidParameter",
            f"Destination path for SSH public keys is currently limited to its default value "
            f"/home/{user}/.ssh/authorized_keys due to a known issue in Linux provisioning agent.",
            target="linuxConfiguration.ssh.publicKeys.path",
        )
    kind, _, rest = str(key.get("keyData", "")).strip().partition(" ")
    size = len(_decoded(rest.partition(" ")[0]) or b"")
    right = size >= 270 if kind == "ssh-rsa" else kind == "ssh-ed25519" and size == 51
    if not right:
        raise ArmError(
            400,
            "InvalidParameter",
            "The value of parameter linuxConfiguration.ssh.publicKeys.keyData is invalid.",
            target="linuxConfiguration.ssh.publicKeys.keyData",
        )


def _check_data(data: str | None) -> None:
    if data is not None and (len(data) > CUSTOM_DATA or _decoded(data) is None):
        raise ArmError(
            400,
            "InvalidParameter",
            f"Custom data in OSProfile must be in Base64 encoding and with a maximum length of "
            f"{CUSTOM_DATA} characters.",
            target="customData",
        )


def _check_storage(given: Mapping[str, Any] | None, size: Size | None, image_of: ImageOf) -> Image:
    reference = (given or {}).get("imageReference") or {}
    if not given or not reference:
        raise _missing("storageProfile.imageReference")
    if reference.get("communityGalleryImageId"):
        raise NotImplementedError("only platform images and managed images are known here")
    names = [reference.get(name) or "" for name in ("publisher", "offer", "sku", "version")]
    image = image_of(reference)
    if image is None and reference.get("id"):
        text = f"The Image '{reference['id']}' cannot be found in this region."
        raise ArmError(404, "NotFound", text, target="imageReference")
    if image is None:
        raise ArmError(
            404,
            "PlatformImageNotFound",
            f"The platform image '{':'.join(names)}' is not available. Verify that all fields in "
            f"the storage profile are correct. For more details about storage profile "
            f"information, please refer to https://aka.ms/storageprofile",
            target="imageReference",
        )
    if size and size.architecture != image.architecture:
        text = f"The architecture '{image.architecture}' of the image does not fit '{size.name}'."
        raise ArmError(400, "BadRequest", text)
    disk = given.get("osDisk") or {}
    if disk.get("createOption") != "FromImage":
        text = "The value of parameter osDisk.createOption is invalid."
        raise ArmError(400, "InvalidParameter", text, target="osDisk.createOption")
    asked = disk.get("diskSizeGB")
    if asked is not None and not image.disk <= asked <= 4095:
        raise ArmError(
            400,
            "InvalidParameter",
            f"The specified disk size {asked} GB is smaller than the size of the corresponding "
            f"disk in the VM image: {image.disk} GB. This is not allowed. Please choose equal or "
            f"greater size or do not specify an explicit size.",
            target="osDisk.diskSizeGB",
        )
    kind = (disk.get("managedDisk") or {}).get("storageAccountType") or "Standard_LRS"
    if kind.startswith("Premium") and size and not size.premium:
        text = f"The VM size {size.name} does not support the storage account type {kind}."
        raise ArmError(400, "InvalidParameter", text, target="osDisk.managedDisk")
    return image


def _check_plan(plan: Mapping[str, Any] | None, image: Image, accepted: set[str]) -> None:
    if not image.plan:
        if plan:
            text = "The image has no plan, and the request has one."
            raise ArmError(400, "VMMarketplaceInvalidInput", text)
        return
    wanted = (image.publisher, image.offer, image.sku)
    given = tuple((plan or {}).get(name, "") for name in ("publisher", "product", "name"))
    if given != wanted:
        raise ArmError(
            400,
            "VMMarketplaceInvalidInput",
            "Creating a virtual machine from Marketplace image or a custom image sourced from a "
            "Marketplace image requires Plan information in the request.",
        )
    if "/".join(wanted).lower() not in accepted:
        raise ArmError(
            400,
            "MarketplacePurchaseEligibilityFailed",
            f"Marketplace purchase eligibility check returned errors. You have not accepted the "
            f"legal terms on this subscription for this plan: {':'.join(wanted)}. Before the "
            f"subscription can be used, you need to accept the legal terms of the image.",
        )


def _check_network(given: Mapping[str, Any] | None) -> None:
    cards = (given or {}).get("networkInterfaceConfigurations") or []
    if not cards:
        raise _missing("networkProfile.networkInterfaceConfigurations")
    if sum(bool((each.get("properties") or {}).get("primary")) for each in cards) != 1:
        text = "Exactly one network interface configuration has to be primary."
        raise ArmError(400, "InvalidParameter", text, target="primary")
    for card in cards:
        addresses = card["properties"].get("ipConfigurations") or []
        if not addresses:
            raise _missing("ipConfigurations")
        for each in addresses:
            if not ((each.get("properties") or {}).get("subnet") or {}).get("id"):
                raise _missing("ipConfigurations.subnet.id")


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _missing(name: str) -> ArmError:
    text = f"Required parameter '{name}' is missing (null)."
    return ArmError(400, "InvalidParameter", text, target=name)
