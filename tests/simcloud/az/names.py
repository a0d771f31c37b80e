"""Rules for names, tags and places that Azure's packages do not know.

What has to fit together inside of a resource does not belong here, see `profile`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping

from tests.simcloud.az.wire import ArmError

LOCATIONS = (
    "australiaeast", "brazilsouth", "canadacentral", "centralindia", "centralus", "eastasia",
    "eastus", "eastus2", "francecentral", "germanywestcentral", "japaneast", "koreacentral",
    "northcentralus", "northeurope", "norwayeast", "polandcentral", "southafricanorth",
    "southcentralus", "southeastasia", "swedencentral", "switzerlandnorth", "uaenorth", "uksouth",
    "westcentralus", "westeurope", "westus", "westus2", "westus3",
)  # fmt: skip
_RULES = {
    "Microsoft.Compute/images": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Compute/proximityPlacementGroups": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Compute/snapshots": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Compute/virtualMachineScaleSets": r"[^\\/\"\[\]:|<>+=;,?*@&_\s]{1,64}(?<![.-])",
    "Microsoft.Insights/autoscaleSettings": r"[^<>%&\\?/]{1,260}(?<![. ])",
    "Microsoft.ManagedIdentity/userAssignedIdentities": r"[A-Za-z0-9][A-Za-z0-9_-]{2,127}",
    "Microsoft.Network/applicationSecurityGroups": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Network/networkSecurityGroups": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Network/virtualNetworks": r"[A-Za-z0-9][\w.-]{0,62}\w",
    "Microsoft.Network/virtualNetworks/subnets": r"[A-Za-z0-9](?:[\w.-]{0,78}\w)?",
    "Microsoft.Resources/resourceGroups": r"[-\w.()]{0,89}[-\w()]",
}
_TAGS = 50
_TAG_NAME, _TAG_VALUE = 512, 256
_RESERVED = ("microsoft", "azure", "windows")


def check_name(type: str, name: str) -> None:
    """Refuse a name that a resource of this type cannot have."""
    if not re.fullmatch(_RULES[type], name):
        code = "InvalidParameter" if type.startswith("Microsoft.Compute") else "InvalidResourceName"
        if type == "Microsoft.Resources/resourceGroups":
            code = "InvalidResourceGroup"
        raise ArmError(400, code, f"Resource name {name} is invalid for the type {type}.")


def check_account_name(name: str) -> str:
    """Why a storage account cannot be called so, or an empty text."""
    if re.fullmatch("[a-z0-9]{3,24}", name):
        return ""
    return (
        f"{name} is not a valid storage account name. Storage account name must be between 3 and "
        f"24 characters in length and use numbers and lower-case letters only."
    )


def check_container_name(name: str) -> None:
    if not re.fullmatch(r"(?=.{3,63}$)[a-z0-9]+(?:-[a-z0-9]+)*", name):
        raise ArmError(
            400, "ContainerNameInvalid", f"The specified container name {name} is invalid."
        )


def check_tags(tags: Mapping[str, str] | None, longest: int = _TAG_NAME, most: int = _TAGS) -> None:
    if not tags:
        return
    if len(tags) > most:
        text = f"The number of tags {len(tags)} exceeds the limit of {most}."
        raise ArmError(400, "InvalidTagCount", text)
    if len({name.lower() for name in tags}) < len(tags):
        raise ArmError(400, "DuplicateTagName", "Tag names are the same in any case.")
    for name, value in tags.items():
        if not name or len(name) > longest or re.search(r"[<>%&\\?/]", name):
            text = (
                f"The tag name '{name}' is invalid: at most {longest} characters, none of <>%&\\?/."
            )
            raise ArmError(400, "InvalidTagNameCharacters", text)
        if name.lower().startswith(_RESERVED):
            text = f"The tag name '{name}' begins with a reserved prefix."
            raise ArmError(400, "ReservedTagName", text)
        if len(value) > _TAG_VALUE:
            text = f"The value of tag '{name}' exceeds {_TAG_VALUE} characters."
            raise ArmError(400, "TagValueTooLong", text)


def check_location(type: str, location: str) -> None:
    if location.replace(" ", "").lower() not in LOCATIONS:
        known = ",".join(LOCATIONS)
        if type == "Microsoft.Resources/resourceGroups":
            code, what = "LocationNotAvailableForResourceGroup", "resource group"
        else:
            code, what = "LocationNotAvailableForResourceType", f"resource type '{type}'"
        raise ArmError(
            400,
            code,
            f"The provided location '{location}' is not available for {what}. List of available "
            f"regions is '{known}'.",
        )


def is_guid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
