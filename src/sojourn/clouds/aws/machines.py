"""What a region offers for a task: the image, the type's architecture, the subnets."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import PYTHONS
from sojourn.clouds.aws import tags
from sojourn.clouds.aws.machine_types import has_gpus, instance_type, stand_ins
from sojourn.clouds.aws.networks import Networks, Subnets, check_network
from sojourn.clouds.aws.regions import in_partition, region
from sojourn.clouds.aws.security_groups import find_group, given_group
from sojourn.clouds.vm.disks import note_on_disk
from sojourn.clouds.vm.options import Network, machine_image, naming_vm_image, network_of
from sojourn.core.errors import InvalidInput
from sojourn.core.images import MADE, made_image
from sojourn.core.parallel import aside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.clouds.aws.account import Account
    from sojourn.core.task import Task

__all__ = ["Image", "ImageName", "Offer", "Offers", "parse_image"]


@dataclass(frozen=True)
class ImageName:
    """How a user names an image; `*` is any. `owner`: one, or some that are separated by commas."""

    user: str
    owner: str
    architecture: str
    name: str
    pythons: tuple[str, ...] = PYTHONS  # that it may have
    made: bool = False  # by `sojourn image make`: its own tags say the rest


_GENERIC = {
    "ubuntu": ImageName(
        "ubuntu",
        "099720109477",
        "*",
        "ubuntu/images/hvm-ssd*/ubuntu-noble-24.04-*-server-*",
        ("312",),
    ),
    "nvidia": ImageName(
        "ubuntu",
        "amazon",
        "*",
        # "Learning ARM64 Base" for arm64
        "Deep Learning*Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) *",
        ("312",),
    ),
}
# For V100s; that of K80s is older still, and in no image that is kept up.
_OLDER_DRIVER = "ubuntu@amazon:x86_64:Deep Learning Base Proprietary Nvidia Driver GPU AMI *"
# Whose images a plain name may mean: ours, and those of Canonical, Amazon and Debian. A name alone
# says nothing of who made an image: others may give theirs the same.
_TRUSTED = "self,099720109477,amazon,136693071363"
_PLAIN = re.compile(r"((?P<user>[a-z_][a-z0-9_-]*)@)?(?P<name>[^@:*?]+)")
_ID = re.compile(r"ami-[0-9a-f]{8,17}")
_USER = "ubuntu"
_FORM = re.compile(r"(?P<user>[^@]+)@(?P<owner>[^:]+):(?P<architecture>[^:]+):(?P<name>.+)")
_STANDARD = "aws"  # the partition of most regions
# Families that AWS withdraws; asked for by old names, they may be nowhere any more.
_WITHDRAWN = {"p2": "K80s", "p3": "V100s", "p3dn": "V100s"}
# Families whose chips are older than Turing, the first that the open driver of an image knows.
_BEFORE_TURING = _WITHDRAWN | {"g3": "M60s", "g3s": "M60s"}
_RICH_REGION = "us-east"  # which gets most types, and first
_INSTEAD_OF_K80S = "m+t4 (g4dn.xlarge), l+t4 (g4dn.12xlarge) or m+a10g (g5.2xlarge)"
_GONE = ("p2",)  # of which no region need be asked


@dataclass(frozen=True)
class Image:
    """An image that exists."""

    id: str
    architecture: str
    root_device: str
    disks: tuple[str, ...]  # that are of EBS, by their devices
    size: int  # GB that its disk has at least; 0: nobody knows
    pythons: tuple[str, ...]
    user: str = _USER  # whom it lets in by SSH


@dataclass(frozen=True)
class Offer:
    """All that has to be found out before a task can be created."""

    region: str
    type: str
    image: Image
    network: Subnets
    group: str = ""  # a security group of the user's own
    can_cluster: bool = True  # whether machines of the type can be put near each other


def parse_image(text: str) -> ImageName:
    """Read an image's name as users write it."""
    if text in _GENERIC:
        return _GENERIC[text]
    if made := made_image(text):
        return ImageName("", "self", "*", made, made=True)
    found = _FORM.fullmatch(text)
    if found:
        return ImageName(found["user"], found["owner"], found["architecture"], found["name"])
    plain = _PLAIN.fullmatch(text)
    if not plain:
        raise InvalidInput(
            "image",
            f"must be {{user}}@{{owner}}:{{architecture}}:{{name}}, the name or ID of an image, or "
            f"one of {', '.join(_GENERIC)}, got {text!r}",
        )
    owner = "*" if _ID.fullmatch(plain["name"]) else _TRUSTED
    return ImageName(plain["user"] or _USER, owner, "*", plain["name"])


def _machine_image(task: Task) -> str:
    return machine_image(task, gpus=has_gpus(instance_type(task.machine)))


def check_offer(task: Task) -> None:
    """Refuse a region, network, machine or image that cannot be one, or that AWS withdraws."""
    region(task.region)
    check_network(network_of(task))
    with naming_vm_image(task):
        image = _machine_image(task)
        parse_image(image)
        _types(task.machine, image)


class Offers:
    """Finds out, and remembers for the length of a command."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[tuple[str, str, str, Network, str], Offer] = {}
        self._users: dict[tuple[str, str], str] = {}  # of images that were made

    def check(self, task: Task) -> list[str]:
        """Refuse what is not there, and what does not fit; returns notes."""
        offer = self.find(task)
        notes = note_on_disk(task, offer.image.size, _machine_image(task))
        if task.gang and not offer.can_cluster:
            notes.append(
                f"{offer.type} does not support cluster placement groups, so the machines of the "
                "gang are in one zone, but may be far from each other in it"
            )
        return notes

    def find(self, task: Task) -> Offer:
        """What the task needs; refuses what is not there."""
        where = region(task.region)
        key = (where, task.machine, _machine_image(task), network_of(task), given_group(task))
        if key not in self._known:
            with naming_vm_image(task):
                self._known[key] = self._find(*key)
        return self._known[key]

    def user_of(self, task: Task) -> str:
        """Whom the image of a task lets in by SSH."""
        wanted = parse_image(_machine_image(task))
        if not wanted.made:
            return wanted.user
        where = region(task.region)
        if (where, wanted.name) not in self._users:  # for each command on a machine, it is asked
            found = self._look(where, wanted)
            # It may be deleted while machines still run.
            user = tags.tag_of(found[0], tags.USER) if found else ""
            self._users[where, wanted.name] = user or _USER
        return self._users[where, wanted.name]

    def replaced(self, task: Task) -> str:
        """What to tell if the task gets another type than its machine's; empty: it does not."""
        asked, found = instance_type(task.machine), self.find(task).type
        if asked == found:
            return ""
        chips = _WITHDRAWN[asked.partition(".")[0]]
        return (
            f"Using {found} for {task.machine}: AWS is retiring {chips}. "
            f"Set the machine type to {found} or another one to choose yourself."
        )

    def _find(self, region: str, machine: str, image: str, network: Network, given: str) -> Offer:
        """The first type of those that will do."""
        self._check_region(region)
        types = _types(machine, image)
        for kind in types:
            try:
                return self._find_type(region, kind, image, network, given)
            except InvalidInput as error:
                if error.path != "machine":
                    raise
        raise _none_of(types, machine, region)

    def _find_type(self, region: str, type: str, image: str, network: Network, given: str) -> Offer:
        wanted = parse_image(image)
        group = find_group(self._account, region, given) if given else None
        if group and not network.parts:
            network = replace(network, parts=(group.vpc,))
        networks = Networks(self._account, region)
        known = aside(partial(networks.look, network))
        zones = aside(partial(self._zones, region, type))
        described = self._described(region, type)
        architecture = _architecture(described)
        if wanted.architecture == "*":
            wanted = replace(wanted, architecture=architecture)
        if wanted.architecture != architecture:
            raise InvalidInput(
                "image", f"{image!r} is for {wanted.architecture}, but {type} is {architecture}"
            )
        found = aside(partial(self._newest, region, wanted))
        subnets = networks.choose(network, known(), type, zones())
        if group and group.vpc != subnets.vpc:
            raise InvalidInput(
                "options.security_group", f"{given!r} is in {group.vpc}, not in {subnets.vpc}"
            )
        given_id = group.id if group else ""
        return Offer(region, type, found(), subnets, given_id, _can_cluster(described))

    def _check_region(self, region: str) -> None:
        partition = self._account.regions().get(region)
        if partition is None:
            raise InvalidInput("region", f"unknown region {region!r}; if it is new, upgrade boto3")
        if partition != _STANDARD:
            raise in_partition(region, partition)

    def _ec2(self, what: str, region: str, operation: str, **arguments: Any) -> Any:
        return self._account.call(what, "ec2", region, operation, **arguments)

    def _described(self, region: str, type: str) -> Any:
        try:
            found = self._ec2("machine", region, "describe_instance_types", InstanceTypes=[type])
        except InvalidInput as error:
            raise _no_such_type(type, region) from error
        return found["InstanceTypes"][0]

    def _zones(self, region: str, type: str) -> set[str]:
        """Those that have the type."""
        offered = self._ec2(
            "machine",
            region,
            "describe_instance_type_offerings",
            LocationType="availability-zone",
            Filters=_is("instance-type", type),
        )
        zones = {str(offer["Location"]) for offer in offered["InstanceTypeOfferings"]}
        if not zones:
            raise _no_such_type(type, region)
        return zones

    def _look(self, region: str, wanted: ImageName) -> list[Any]:
        """All images that a name may mean."""
        owners = wanted.owner.split(",")
        arguments: dict[str, Any] = {} if wanted.owner == "*" else {"Owners": owners}
        named = "image-id" if _ID.fullmatch(wanted.name) else "name"
        architecture = _is("architecture", wanted.architecture)
        found = self._ec2(
            "image",
            region,
            "describe_images",
            Filters=[
                *_is(f"tag:{tags.IMAGE}" if wanted.made else named, wanted.name),
                *(architecture if wanted.architecture != "*" else ()),
                *_is("state", "available"),
            ],
            **arguments,
        )
        images: list[Any] = found["Images"]
        return images

    def _newest(self, region: str, wanted: ImageName) -> Image:
        found = self._look(region, wanted)
        if not found:
            raise _not_found(region, wanted)
        image = max(found, key=lambda image: image["CreationDate"])
        root = image["RootDeviceName"]
        disks = {
            disk["DeviceName"]: disk["Ebs"].get("VolumeSize", 0)
            for disk in image.get("BlockDeviceMappings", ())
            if "Ebs" in disk
        }
        return Image(
            id=image["ImageId"],
            architecture=image["Architecture"],
            root_device=root,
            disks=tuple(dict.fromkeys([root, *disks])),
            size=disks.get(root, 0),
            pythons=wanted.pythons,
            user=(tags.tag_of(image, tags.USER) if wanted.made else wanted.user) or _USER,
        )


def _architecture(type: Any) -> str:
    supported = type["ProcessorInfo"]["SupportedArchitectures"]
    return "arm64" if "arm64" in supported else "x86_64"


def _can_cluster(type: Any) -> bool:
    """Burstable types, among others, cannot be in placement groups with this strategy."""
    return "cluster" in type.get("PlacementGroupInfo", {}).get("SupportedStrategies", ())


def _is(name: str, value: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": [value]}]


def _not_found(region: str, wanted: ImageName) -> InvalidInput:
    if wanted.made:
        return InvalidInput(
            "image",
            f"image {MADE}{wanted.name} for {wanted.architecture} not found in {region}; run "
            f"`sojourn image make {wanted.name} --cloud aws --region {region} --script FILE` "
            "to make it",
        )
    return InvalidInput(
        "image",
        f"image {wanted.name!r} not found in {region} (owner {wanted.owner}, "
        f"architecture {wanted.architecture})",
    )


def _types(machine: str, image: str) -> tuple[str, ...]:
    """What a machine may be, the best first. The open driver of one image is for newer chips."""
    kind, others = instance_type(machine), stand_ins(machine)
    family = kind.partition(".")[0]
    chip = _BEFORE_TURING.get(family)
    if family in _GONE:
        raise _gone(kind)
    if not chip or image != "nvidia":
        return (kind, *others)
    if not others:
        raise InvalidInput(
            "machine",
            f"the driver of the image 'nvidia' does not support the {chip} of {kind}; use another "
            f"machine, such as m+t4, or an image with an older driver: {_OLDER_DRIVER}",
        )
    return others


def _gone(type: str) -> InvalidInput:
    chip = _WITHDRAWN[type.partition(".")[0]]
    return InvalidInput(
        "machine",
        f"{type} has {chip}, which AWS is retiring: use {_INSTEAD_OF_K80S}",
    )


def _none_of(types: Sequence[str], machine: str, region: str) -> InvalidInput:
    """`types`: what a machine may be, none of which a region has."""
    if not stand_ins(machine):
        return _no_such_type(types[0], region)
    chip = _WITHDRAWN[instance_type(machine).partition(".")[0]]
    return InvalidInput(
        "machine",
        f"AWS is retiring the {chip} of {machine}, and {region} has none of {', '.join(types)}; "
        f"use another region, such as {_RICH_REGION}, or another machine",
    )


def _no_such_type(type: str, region: str) -> InvalidInput:
    chip = _WITHDRAWN.get(type.partition(".")[0])
    if chip:
        more = f"AWS is retiring {chip}: use m+t4 or another type, such as g5.xlarge"
    else:
        more = f"run `aws ec2 describe-instance-type-offerings --region {region}` to see all types"
    return InvalidInput("machine", f"{type} is not available in {region}; {more}")
