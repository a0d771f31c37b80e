"""What a zone offers for a task: the image, the machine type, the network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.agent.bundle import PYTHONS
from sojourn.clouds.gcp.image_notes import own_name, told_by
from sojourn.clouds.gcp.machine_types import MachineType, machine_type
from sojourn.clouds.gcp.networks import NetworkPaths, find_network, parse_network
from sojourn.clouds.gcp.regions import region_of, zone
from sojourn.clouds.vm.disks import note_on_disk
from sojourn.clouds.vm.options import Network, machine_image, naming_vm_image, network_of
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.images import made_image
from sojourn.core.parallel import aside

if TYPE_CHECKING:
    from sojourn.clouds.gcp.account import Account
    from sojourn.core.task import Task

__all__ = ["Image", "ImageName", "Offer", "Offers", "parse_image"]

_ARM = "ARM64"


@dataclass(frozen=True)
class ImageName:
    """How a user names an image: a family of a project, or one image.

    `arm`: its family for ARM. Without a `project`, it is the user's own.
    """

    user: str
    project: str
    family: str
    arm: str = ""
    pythons: tuple[str, ...] = PYTHONS  # that it may have
    made: str = ""  # the name of one that `sojourn image make` made, which says the rest itself


_GENERIC = {
    "ubuntu": ImageName(
        "ubuntu",
        "ubuntu-os-cloud",
        "ubuntu-2404-lts-amd64",
        "ubuntu-2404-lts-arm64",
        ("312",),
    ),
    "nvidia": ImageName(
        "ubuntu",
        "deeplearning-platform-release",
        "common-cu128-ubuntu-2404-nvidia-570",
        pythons=("312",),
    ),
}
_FORM = re.compile(r"((?P<user>[^@/]+)@)?((?P<project>[a-z0-9:.-]+)/)?(?P<family>[a-z][a-z0-9-]*)")
_USER = "ubuntu"


@dataclass(frozen=True)
class Image:
    """An image that exists."""

    user: str
    path: str  # below the API's root, with its project
    architecture: str
    size: int  # GB that its disk has at least
    pythons: tuple[str, ...]


@dataclass(frozen=True)
class Offer:
    """All that has to be found out before a task can be created."""

    zone: str
    type: MachineType
    image: Image
    network: NetworkPaths


def parse_image(text: str) -> ImageName:
    """Read an image's name as users write it."""
    if text in _GENERIC:
        return _GENERIC[text]
    if made := made_image(text):
        return ImageName("", "", own_name(made), made=made)
    found = _FORM.fullmatch(text)
    if not found:
        raise InvalidInput(
            "image",
            f"must be {{user}}@{{project}}/{{family}}, a family or image of your project, or one "
            f"of {', '.join(_GENERIC)}, got {text!r}",
        )
    return ImageName(found["user"] or _USER, found["project"] or "", found["family"])


def _machine_image(task: Task) -> str:
    return machine_image(task, gpus=machine_type(task.machine).has_gpus)


def check_offer(task: Task) -> None:
    """Refuse a zone, network, machine or image that cannot be one."""
    zone(task.region)
    given = network_of(task)
    if given.parts:
        parse_network(given)
    with naming_vm_image(task):
        parse_image(_machine_image(task))


class Offers:
    """Finds out, and remembers for the length of a command."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[tuple[str, str, str, Network], Offer] = {}
        self._users: dict[str, str] = {}  # of images that were made

    def check(self, task: Task) -> list[str]:
        """Refuse what is not there, and what does not fit; returns notes."""
        return note_on_disk(task, self.find(task).image.size, _machine_image(task))

    def user_of(self, task: Task) -> str:
        """Whom the image of a task lets in by SSH."""
        wanted = parse_image(_machine_image(task))
        if not wanted.made:
            return wanted.user
        if wanted.made not in self._users:  # for each command on a machine, it is asked
            path = f"global/images/{wanted.family}"
            try:
                found = self._account.compute("image", "GET", path)
            except NotFound:  # it may be deleted while machines still run
                found = {}
            self._users[wanted.made] = told_by(found).get("user") or _USER
        return self._users[wanted.made]

    def replaced(self, task: Task) -> str:
        """Nothing: machines that Google withdrew are refused."""
        return ""

    def find(self, task: Task) -> Offer:
        """What the task needs; refuses what is not there."""
        key = (zone(task.region), task.machine, _machine_image(task), network_of(task))
        if key not in self._known:
            with naming_vm_image(task):
                self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, where: str, machine: str, image: str, given: Network) -> Offer:
        wanted, kind = parse_image(image), machine_type(machine)
        network = aside(partial(find_network, self._account, region_of(where), given))
        attached = aside(partial(self._check_accelerator, where, kind))
        architecture = self._architecture(where, kind)
        found = self._image(wanted, image, architecture)
        attached()
        if found.architecture != architecture:
            raise InvalidInput(
                "image", f"{image!r} is for {found.architecture}, but {kind.name} is {architecture}"
            )
        return Offer(where, kind, found, network())

    def _architecture(self, where: str, kind: MachineType) -> str:
        try:
            found = self._account.compute(
                "machine", "GET", f"zones/{where}/machineTypes/{kind.name}"
            )
        except NotFound as error:
            raise InvalidInput(
                "machine",
                f"{kind.name} is not available in {where}; run `gcloud compute machine-types list "
                f"--zones {where}` to see all types",
            ) from error
        except InvalidInput as error:
            raise InvalidInput("region", f"unknown zone {where!r}") from error
        return str(found.get("architecture") or "X86_64")

    def _check_accelerator(self, where: str, kind: MachineType) -> None:
        if not kind.accelerator:
            return
        try:
            found = self._account.compute(
                "machine", "GET", f"zones/{where}/acceleratorTypes/{kind.accelerator}"
            )
        except NotFound as error:
            raise InvalidInput(
                "machine",
                f"{kind.accelerator} is not available in {where}; run `gcloud compute "
                f"accelerator-types list --filter name={kind.accelerator}` to see where it is",
            ) from error
        except InvalidInput:
            return  # the zone is unknown, which others tell
        most = int(found.get("maximumCardsPerInstance", kind.count))
        if kind.count > most:
            raise InvalidInput(
                "machine", f"a machine can have at most {most} {kind.accelerator}, got {kind.count}"
            )

    def _image(self, wanted: ImageName, given: str, architecture: str) -> Image:
        family = wanted.arm if architecture == _ARM and wanted.arm else wanted.family
        project = wanted.project or self._account.project
        images = f"compute/v1/projects/{project}/global/images"
        found: Any = None
        # A family of this name would be somebody else's.
        families = () if wanted.made else (f"{images}/family/{family}",)
        for path in (*families, f"{images}/{family}"):
            try:
                found = self._account.call("image", "compute", "GET", path)
                break
            except NotFound:
                continue
        if wanted.made and (not told_by(found or {}) or found["status"] != "READY"):
            raise InvalidInput(
                "image",
                f"image {given} not found in project {project}; run `sojourn image make "
                f"{wanted.made} --cloud gcp --script FILE` to make it",
            )
        if found is None:
            raise InvalidInput("image", f"{given!r} not found: project {project} has no {family}")
        return Image(
            user=(told_by(found).get("user") if wanted.made else wanted.user) or _USER,
            path=f"projects/{project}/global/images/{found['name']}",
            architecture=str(found.get("architecture") or "X86_64"),
            size=int(found.get("diskSizeGb", 0)),
            pythons=wanted.pythons,
        )
