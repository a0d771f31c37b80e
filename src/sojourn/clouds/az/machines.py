"""What a region offers for a task: the size, and an image that fits it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import PYTHONS
from sojourn.clouds.az.image_groups import group_of, told_by
from sojourn.clouds.az.machine_types import has_gpus, replacement, size, stand_in
from sojourn.clouds.az.regions import region
from sojourn.clouds.vm.disks import note_on_disk
from sojourn.clouds.vm.options import machine_image, naming_vm_image
from sojourn.core.errors import AuthError, InvalidInput, NotFound
from sojourn.core.images import MADE, made_image
from sojourn.core.parallel import aside

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account
    from sojourn.core.task import Task

__all__ = [
    "SMALLEST_DISK",
    "Image",
    "ImageName",
    "Offer",
    "Offers",
    "Size",
    "parse_image",
]


@dataclass(frozen=True)
class ImageName:
    """How a user names an image."""

    user: str
    publisher: str
    offer: str
    sku: str
    version: str = "latest"
    pythons: tuple[str, ...] = PYTHONS  # that it may have
    arm: str = ""  # the sku for Arm64, where we know it
    older: str = ""  # the one for machines of the first generation
    made: str = ""  # the name of one that `sojourn image make` made, which says the rest itself

    @property
    def urn(self) -> str:
        if self.made:
            return f"{MADE}{self.made}"
        return f"{self.publisher}:{self.offer}:{self.sku}:{self.version}"


_GENERIC = {
    "ubuntu": ImageName(
        "ubuntu",
        "Canonical",
        "ubuntu-24_04-lts",
        "server",
        pythons=("312",),
        arm="server-arm64",
        older="server-gen1",
    ),
    "nvidia": ImageName("ubuntu", "microsoft-dsvm", "ubuntu-2204", "2204-gen2"),
}
_FORM = re.compile(
    r"((?P<user>[^@]+)@)?(?P<publisher>[^:@]+):(?P<offer>[^:]+):(?P<sku>[^:]+):(?P<version>[^:#]+)"
    r"(:?#plan)?"
)
_USER = "ubuntu"
_RICH_REGION = "us-east"  # which has most sizes
SMALLEST_DISK = 30  # GB, which images for Linux have there; Azure does not tell of one by one
_GENERATIONS = {"V1": "1", "V2": "2"}


@dataclass(frozen=True)
class Size:
    """A size of machines that a region has."""

    name: str
    architecture: str  # x64 or Arm64
    generations: frozenset[str]  # V1 and V2
    premium: bool  # whether it takes disks of the fast kind
    spot: bool


@dataclass(frozen=True)
class Image:
    """An image that exists. `plan`: what has to be said of one that somebody sells.

    `id` and `size`: of one that was made, and how many GB its disk has at least.
    """

    name: ImageName
    architecture: str
    plan: tuple[tuple[str, str], ...] = ()
    id: str = ""
    size: int = 0

    @property
    def pythons(self) -> tuple[str, ...]:
        return self.name.pythons


@dataclass(frozen=True)
class Offer:
    """All that has to be found out before a task can be created."""

    region: str
    size: Size
    image: Image


def parse_image(text: str) -> ImageName:
    """Read an image's name as users write it."""
    if text in _GENERIC:
        return _GENERIC[text]
    if made := made_image(text):
        return ImageName("", "", "", "", made=made)
    found = _FORM.fullmatch(text)
    if not found:
        raise InvalidInput(
            "image",
            f"must be {{user}}@{{publisher}}:{{offer}}:{{sku}}:{{version}}, where {{user}}@ is "
            f"{_USER}@ by default, or one of "
            f"{', '.join(_GENERIC)}, got {text!r}",
        )
    return ImageName(
        found["user"] or _USER, found["publisher"], found["offer"], found["sku"], found["version"]
    )


def _machine_image(task: Task) -> str:
    return machine_image(task, gpus=has_gpus(size(task.machine)))


def check_offer(task: Task) -> None:
    """Refuse a region, machine or image that cannot be one, or that Azure no longer has."""
    where, name = region(task.region), size(task.machine)
    if replacement(name) and not stand_in(task.machine):
        raise _no_such_size(name, where)
    with naming_vm_image(task):
        parse_image(_machine_image(task))


class Offers:
    """Finds out, and remembers for the length of a command."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[tuple[str, str, str], Offer] = {}
        self._users: dict[tuple[str, str], str] = {}  # of images that were made

    def check(self, task: Task) -> list[str]:
        """Refuse what is not there, and what does not fit; returns notes."""
        found = self.find(task)
        size = found.size
        if task.spot >= 0 and not size.spot:
            raise InvalidInput(
                "spot",
                f"{size.name} is not offered as a spot machine; use another machine, such as m",
            )
        least = max(found.image.size, SMALLEST_DISK)
        return note_on_disk(task, least, _machine_image(task))

    def user_of(self, task: Task) -> str:
        """Whom the image of a task lets in by SSH."""
        wanted = parse_image(_machine_image(task))
        if not wanted.made:
            return wanted.user
        key = (wanted.made, region(task.region))
        if key not in self._users:  # for each command on a machine, it is asked
            try:
                group = self._account.call("image", "GET", group_of(self._account, *key).path)
                told = told_by(group)
            except NotFound:  # it may be deleted while machines still run
                told = None
            self._users[key] = (told.user if told else "") or _USER
        return self._users[key]

    def find(self, task: Task) -> Offer:
        """What the task needs; refuses what is not there."""
        key = (region(task.region), task.machine, _machine_image(task))
        if key not in self._known:
            with naming_vm_image(task):
                self._known[key] = self._find(*key)
        return self._known[key]

    def replaced(self, task: Task) -> str:
        """What to tell if the task gets another size than its machine's; empty: it does not."""
        asked, found = size(task.machine), self.find(task).size.name
        gone = replacement(asked)
        if not gone or asked.lower() == found.lower():
            return ""
        return (
            f"Using {found} for {task.machine}: Azure has retired {gone[0]}. "
            f"Set the machine type to {found} or another one to choose yourself."
        )

    def _find(self, region: str, machine: str, image: str) -> Offer:
        wanted = parse_image(image)
        self._check_region(region)
        usual = aside(partial(self._image, region, wanted))
        offered = self._offered(region, machine)
        chosen = _fitting(wanted, offered)
        found = usual() if chosen is wanted else self._image(region, chosen)
        if found is None:
            raise _no_such_image(chosen, region)
        _check_fit(image, *found, offered)
        self._check_terms(found[0])
        return Offer(region, offered, found[0])

    def _check_region(self, region: str) -> None:
        found = self._account.pages("regions", "locations")
        known = sorted(str(each["name"]) for each in found)
        if region not in known:
            raise InvalidInput(
                "region", f"unknown region {region!r}; Azure has: {', '.join(known)}"
            )

    def _offered(self, region: str, machine: str) -> Size:
        """The size of a machine, or that which stands in for it."""
        own, other = size(machine), stand_in(machine)
        if not other:
            return self._size(region, own)
        for name in (own, other):
            try:
                return self._size(region, name)
            except InvalidInput:
                continue
        raise InvalidInput(
            "machine",
            f"Azure has retired the V100s of {machine}, and {region} has neither {own} nor {other} "
            f"in this subscription; use another region, such as {_RICH_REGION}, or another machine",
        )

    def _size(self, region: str, name: str) -> Size:
        query = {"$filter": f"location eq '{region}'"}
        for each in self._account.pages("machine", "providers/Microsoft.Compute/skus", query):
            if each["resourceType"] != "virtualMachines" or each["name"].lower() != name.lower():
                continue
            if any(_covers(rule, region) for rule in each.get("restrictions") or ()):
                raise _no_such_size(name, region, "in this subscription")
            able = {item["name"]: item["value"] for item in each.get("capabilities") or ()}
            return Size(
                str(each["name"]),
                able.get("CpuArchitectureType", "x64"),
                frozenset(able.get("HyperVGenerations", "V1").split(",")),
                able.get("PremiumIO") == "True",
                able.get("LowPriorityCapable") == "True",
            )
        raise _no_such_size(name, region)

    def _image(self, region: str, wanted: ImageName) -> tuple[Image, str] | None:
        """The image and its generation; None: there is none."""
        if wanted.made:
            return self._made(region, wanted)
        path = (
            f"providers/Microsoft.Compute/locations/{region}/publishers/{wanted.publisher}"
            f"/artifacttypes/vmimage/offers/{wanted.offer}/skus/{wanted.sku}/versions"
        )
        version = wanted.version
        try:
            if version == "latest":
                newest = self._account.call(
                    "image", "GET", path, query={"$top": "1", "$orderby": "name desc"}
                )
                if not newest:
                    return None
                version = str(newest[0]["name"])
            found = self._account.call("image", "GET", f"{path}/{version}")["properties"]
        except (NotFound, InvalidInput):
            return None
        plan = tuple(sorted((found.get("plan") or {}).items()))
        image = Image(wanted, found.get("architecture", "x64"), plan)
        return image, found.get("hyperVGeneration", "V1")

    def _made(self, region: str, wanted: ImageName) -> tuple[Image, str] | None:
        """The same of one that was made, and finished."""
        group = group_of(self._account, wanted.made, region)
        try:
            told = told_by(self._account.call("image", "GET", group.path))
            if not told or not told.ready:
                return None
            found = self._account.call("image", "GET", group.image_path)
        except NotFound:
            return None
        disk = found["properties"]["storageProfile"]["osDisk"]
        image = Image(
            name=replace(wanted, user=told.user or _USER),
            architecture="x64",  # Azure has managed images for no other
            plan=told.plan,
            id=str(found["id"]),
            size=int(disk.get("diskSizeGB") or 0),
        )
        return image, str(found["properties"].get("hyperVGeneration") or "V1")

    def _check_terms(self, image: Image) -> None:
        """What somebody sells needs the user's consent; nobody else can give it."""
        if not image.plan:
            return
        plan = dict(image.plan)
        path = (
            "providers/Microsoft.MarketplaceOrdering/offerTypes/virtualmachine/publishers/"
            f"{plan['publisher']}/offers/{plan['product']}/plans/{plan['name']}/agreements/current"
        )
        try:
            terms = self._account.call("image", "GET", path)
        except AuthError:
            return  # one may do without knowing
        if not terms["properties"].get("accepted"):
            raise InvalidInput(
                "image",
                f"the terms of {image.name.urn} are not accepted; run `az vm image terms accept "
                f"{_terms_of(image)}`",
            )


def _fitting(wanted: ImageName, offered: Size) -> ImageName:
    """The image as it is called for a size, if we know that."""
    if offered.architecture == "Arm64" and wanted.arm:
        return replace(wanted, sku=wanted.arm)
    if "V2" not in offered.generations and wanted.older:
        return replace(wanted, sku=wanted.older)
    return wanted


def _check_fit(text: str, image: Image, generation: str, offered: Size) -> None:
    if image.architecture != offered.architecture:
        raise InvalidInput(
            "image",
            f"{text!r} is for {image.architecture}, but {offered.name} is {offered.architecture}",
        )
    if generation not in offered.generations:
        raise InvalidInput(
            "image",
            f"{text!r} is for machines of generation {_GENERATIONS.get(generation, generation)}, "
            f"which {offered.name} is not; choose another image or machine",
        )


def _terms_of(image: Image) -> str:
    """How Azure's command line names what has to be accepted."""
    if not image.name.made:
        return f"--urn {image.name.urn}"
    plan = dict(image.plan)
    publisher, product, name = (plan[key] for key in ("publisher", "product", "name"))
    return f"--publisher {publisher} --offer {product} --plan {name}"


def _no_such_image(wanted: ImageName, region: str) -> InvalidInput:
    message = f"image {wanted.urn} not found in {region}"
    if wanted.made:
        message += f"; run `sojourn image make {wanted.made} --cloud az --script FILE` to make it"
    return InvalidInput("image", message)


def _covers(restriction: Any, region: str) -> bool:
    """Whether a size cannot be had in a region at all; a zone does not matter to us."""
    values = [str(each).lower() for each in restriction.get("values") or ()]
    return restriction.get("type") == "Location" and region in values


def _no_such_size(name: str, region: str, why: str = "") -> InvalidInput:
    gone = replacement(name)
    where = " ".join(part for part in (f"in {region}", why) if part)
    if gone:
        more = f"Azure has retired {gone[0]}: use {gone[1]}"
    else:
        more = f"run `az vm list-skus --location {region} --output table` to see all sizes"
    return InvalidInput("machine", f"{name} is not available {where}; {more}")
