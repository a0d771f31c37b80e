"""From a launch template to an instance: what EC2 checks, and what it takes over.

Whether there is room for it does not belong here, see `market`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from tests.simcloud.aws import backends, images, placement
from tests.simcloud.aws.fleet import Instance
from tests.simcloud.aws.market import LaunchRefusedError, Market, Refusal, Wanted
from tests.simcloud.common.clock import Clock
from tests.simcloud.machines.spec import Login

USER_DATA_LIMIT = 16384


def find_template(region: str, reference: Mapping[str, str]) -> tuple[Any, Any]:
    """The template and the version of it that is meant."""
    backend = backends.ec2(region)
    given, name = reference.get("LaunchTemplateId"), reference.get("LaunchTemplateName")
    templates = backend.launch_templates.values()
    found = next((t for t in templates if (t.id == given if given else t.name == name)), None)
    if found is None:
        which = f"ID {given}" if given else f"name {name}"
        raise LaunchRefusedError(
            f"The specified launch template, with template {which}, does not exist."
        )
    version = reference.get("Version") or "$Default"
    if not version.startswith("$") and not 0 < int(version) <= len(found.versions):
        raise LaunchRefusedError(
            f"The specified launch template version, with version number {version}, does not exist."
        )
    return found, found.get_version(version)


class Profiles:
    """When instance profiles become known to EC2, and security groups to what launches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: dict[str, float] = {}

    def made(self, name: str, seconds: float) -> None:
        self._ready[name] = self._clock.now() + seconds

    def knows(self, name: str) -> bool:
        return self._ready.get(name, 0.0) <= self._clock.now()

    def role(self, given: Mapping[str, str]) -> str:
        """The role that an instance with this profile gets; none given, none had."""
        if not given:
            return ""
        for profile in backends.iam().instance_profiles.values():
            known = profile.name == given.get("Name") or profile.arn == given.get("Arn")
            if known and profile.roles and self.knows(profile.name):
                return str(profile.roles[0].name)
        by, value = ("Arn", given["Arn"]) if "Arn" in given else ("Name", given["Name"])
        what = "ARN" if by == "Arn" else "name"
        raise LaunchRefusedError(
            f"Value ({value}) for parameter iamInstanceProfile.{by.lower()} is invalid. "
            f"Invalid IAM Instance Profile {what}"
        )


def check(region: str, data: Mapping[str, Any], profiles: Profiles) -> None:
    """Refuse what can be launched nowhere; a group checks this when it is made, and each time."""
    backend = backends.ec2(region)
    for name in ("ImageId", "InstanceType"):
        if not data.get(name):
            raise LaunchRefusedError(f"The request must contain the parameter {name}")
    image = backend.amis.get(data["ImageId"])
    if image is None or image.state != "available":
        raise LaunchRefusedError(Refusal.IMAGE.value.format(image=data["ImageId"]))
    kind = data["InstanceType"]
    if kind not in INSTANCE_TYPES:
        raise LaunchRefusedError(f"Invalid value '{kind}' for InstanceType.")
    fits = INSTANCE_TYPES[kind]["ProcessorInfo"]["SupportedArchitectures"]
    if image.architecture not in fits:
        raise LaunchRefusedError(
            f"The architecture '{','.join(fits)}' of the specified instance type does not match "
            f"the architecture '{image.architecture}' of the specified AMI. Specify an instance "
            f"type and an AMI that have matching architectures, and try again."
        )
    key = data.get("KeyName")
    if key and key not in backend.key_pairs:
        raise LaunchRefusedError(f"The key pair '{key}' does not exist")
    for group in security_groups(data):
        if backend.get_security_group_from_id(group) is None or not profiles.knows(group):
            raise LaunchRefusedError(f"The security group '{group}' does not exist")
    if data.get("NetworkInterfaces") and data.get("SecurityGroupIds"):
        raise LaunchRefusedError(
            "When a network interface is provided, the security groups must be a part of it."
        )
    if len(base64.b64decode(str(data.get("UserData") or ""))) > USER_DATA_LIMIT:
        raise LaunchRefusedError(f"User data is limited to {USER_DATA_LIMIT} bytes")
    for mapping in data.get("BlockDeviceMappings", []):
        size = mapping.get("Ebs", {}).get("VolumeSize")
        if mapping["DeviceName"] == image.root_device_name and size and size < image.size:
            raise LaunchRefusedError(
                f"Volume of size {size}GB is smaller than snapshot '{image.ebs_snapshot.id}', "
                f"expect size >= {image.size}GB"
            )
    placement.check(backend, data)
    profiles.role(data.get("IamInstanceProfile", {}))


def security_groups(data: Mapping[str, Any]) -> list[str]:
    """Those of the instance and those of its interfaces."""
    groups = list(data.get("SecurityGroupIds", []))
    for interface in data.get("NetworkInterfaces", []):
        groups += interface.get("Groups", [])
    return groups


def offered(region: str, type: str) -> list[str]:
    """The zones that have this type."""
    offers = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return sorted(offer["Location"] for offer in offers if offer["InstanceType"] == type)


def launch(
    template: Any,
    version: Any,
    subnet: str,
    tags: Mapping[str, str],
    market: Market,
    profiles: Profiles,
) -> Instance:
    """Make the instance, if there is room for it."""
    backend = template.ec2_backend
    region, data = backend.region_name, version.data
    check(region, data, profiles)
    zone = backend.get_subnet(subnet).availability_zone
    placement.check(backend, data, zone)
    wanted = _wanted(data, zone, offered(region, data["InstanceType"]))
    market.take(wanted)
    record = _make(backend, data, subnet, wanted)
    record.placed_in = placement.name_in(data)
    record.add_tags(
        {
            **_tags(data, "instance"),
            **tags,
            "aws:ec2launchtemplate:id": template.id,
            "aws:ec2launchtemplate:version": str(version.number),
        }
    )
    profile = data.get("IamInstanceProfile", {})
    if profile:
        backend.associate_iam_instance_profile(
            record.id,
            iam_instance_profile_name=profile.get("Name"),
            iam_instance_profile_arn=profile.get("Arn"),
        )
    group = tags.get("aws:autoscaling:groupName", "")
    disk = getattr(backend.amis[data["ImageId"]], "disk", None)
    return Instance(region, record, group, profiles.role(profile), _logins(backend, data), disk)


def _logins(backend: Any, data: Mapping[str, Any]) -> tuple[Login, ...]:
    """The user of the image, who exists without a key as well. All images here are of Ubuntu."""
    name = data.get("KeyName")
    return (Login(images.USER, (backend.key_pairs[name].public_key,) if name else ()),)


def _wanted(data: Mapping[str, Any], zone: str, zones: list[str]) -> Wanted:
    market = data.get("InstanceMarketOptions", {})
    spot = market.get("MarketType") == "spot"
    price = market.get("SpotOptions", {}).get("MaxPrice", "")
    if price and not (re.fullmatch(r"\d*\.?\d+", price) and float(price) > 0):
        raise LaunchRefusedError(f"Invalid value '{price}' for spot price.")
    others = tuple(each for each in zones if each != zone)
    wanted = Wanted(data["InstanceType"], zone, others, data["ImageId"], spot, price)
    if zone not in zones:
        raise wanted.refused(Refusal.UNSUPPORTED)
    return wanted


def _make(backend: Any, data: Mapping[str, Any], subnet: str, wanted: Wanted) -> Any:
    interfaces = [
        {key: value for key, value in interface.items() if key != "Groups"}
        for interface in data.get("NetworkInterfaces", [])
    ]
    reservation = backend.run_instances(
        data["ImageId"],
        1,
        data.get("UserData"),
        [],
        security_group_ids=security_groups(data) or [backend.get_default_security_group().id],
        instance_type=data["InstanceType"],
        is_instance_type_default=False,
        region_name=backend.region_name,
        subnet_id=subnet,
        key_name=data.get("KeyName"),
        nics=interfaces,
        associate_public_ip=None,
        block_device_mappings=_disks(backend.amis[data["ImageId"]], data),
        tags={"volume": _tags(data, "volume")},
        instance_initiated_shutdown_behavior=data.get("InstanceInitiatedShutdownBehavior"),
        metadata_options=data.get("MetadataOptions", {}),
        instance_market_options=wanted.spot,
    )
    record = reservation.instances[0]
    given = {interface.get("DeviceIndex", 0): interface for interface in interfaces}
    for index, nic in record.nics.items():
        nic.delete_on_termination = given.get(index, {}).get("DeleteOnTermination", True)
        nic.add_tags(_tags(data, "network-interface"))
    return record


def _disks(image: Any, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Those of the template, and the one of the image, with the defaults of the image."""
    root = image.block_device_mappings[0]
    disks = {root["DeviceName"]: root["Ebs"]}
    for mapping in data.get("BlockDeviceMappings", []):
        name = mapping["DeviceName"]
        disks[name] = {**disks.get(name, {}), **mapping.get("Ebs", {})}
    return [{"DeviceName": name, "Ebs": ebs} for name, ebs in disks.items()]


def _tags(data: Mapping[str, Any], kind: str) -> dict[str, str]:
    return {
        tag["Key"]: tag["Value"]
        for specification in data.get("TagSpecifications", [])
        if specification["ResourceType"] == kind
        for tag in specification.get("Tags", [])
    }
