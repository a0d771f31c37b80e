"""Which image and which machines a task gets, and what is said where there are none."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

import sojourn
from sojourn.clouds.aws import machine_types, scaler
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.machine_types import has_gpus, instance_type
from sojourn.clouds.aws.machines import Offer, Offers, parse_image
from sojourn.core.errors import InvalidInput, NotFound, SojournError
from sojourn.core.task import Task
from tests.simcloud.aws import backends
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User

_UBUNTU = "ubuntu/images/hvm-ssd*/ubuntu-jammy-22.04-*-server-*"


def _found(**more: Any) -> Offer:
    return Offers(Account()).find(Task("#!/bin/sh\n", cloud="aws", **more))


def _refused(**more: Any) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        _found(**more)
    return caught.value


def _name_of(offer: Offer) -> str:
    return str(backends.ec2(offer.region).amis[offer.image.id].name)


def test_ubuntu_is_the_newest_of_its_name(laptop: SimAWS) -> None:
    assert _name_of(_found()).endswith("ubuntu-noble-24.04-amd64-server-20250305")


def test_an_image_by_its_own_name_is_the_newest_of_those_that_match(laptop: SimAWS) -> None:
    found = _found(image=f"ubuntu@099720109477:x86_64:{_UBUNTU}")
    assert _name_of(found).endswith("jammy-22.04-amd64-server-20250305")
    assert len(found.image.pythons) > 1


def test_images_of_any_owner(laptop: SimAWS) -> None:
    assert "jammy" in _name_of(_found(image=f"ubuntu@*:x86_64:{_UBUNTU}"))


@pytest.mark.parametrize("image", ["ubuntu", f"ubuntu@099720109477:*:{_UBUNTU}"])
def test_arm_machines_get_arm_images(laptop: SimAWS, image: str) -> None:
    found = _found(machine="m6g.large", image=image)
    assert found.image.architecture == "arm64"
    assert "-arm64-" in _name_of(found)


@pytest.mark.parametrize(("machine", "other"), [("m6g.large", "x86_64"), ("m5.large", "arm64")])
def test_an_image_of_another_architecture_is_refused(
    laptop: SimAWS, machine: str, other: str
) -> None:
    error = _refused(machine=machine, image=f"ubuntu@*:{other}:{_UBUNTU}")
    assert error.path == "image"
    assert f"is for {other}, but {machine} is" in error.message


def test_an_image_that_nobody_has_is_refused(laptop: SimAWS) -> None:
    error = _refused(image="ubuntu@099720109477:x86_64:nothing-*")
    assert error.path == "image"
    assert (
        "image 'nothing-*' not found in us-west-1 (owner 099720109477, architecture x86_64)"
        in error.message
    )


@pytest.mark.parametrize("machine", ["m+k80", "l+k80", "xl+k80", "p2.xlarge"])
@pytest.mark.parametrize("image", ["ubuntu", "nvidia", "docker://python:3.12"])
def test_machines_with_k80s_are_refused_with_what_to_use_instead(
    laptop: SimAWS, machine: str, image: str
) -> None:
    """No image is offered: none that is kept up has a driver for them."""
    error = _refused(machine=machine, image=image)
    assert error.path == "machine"
    assert error.message == (
        f"machine: {instance_type(machine)} has K80s, which AWS is retiring: use m+t4 "
        "(g4dn.xlarge), l+t4 (g4dn.12xlarge) or m+a10g (g5.2xlarge)"
    )


@pytest.mark.parametrize("machine", ["m5.gigantic", "none.large"])
def test_a_type_that_is_nowhere_is_refused(laptop: SimAWS, machine: str) -> None:
    error = _refused(machine=machine)
    assert error.path == "machine"
    assert error.message.startswith(f"machine: {machine} is not available in us-west-1; ")
    assert "describe-instance-type-offerings --region us-west-1" in error.message


def test_a_region_that_there_is_not_is_refused(laptop: SimAWS) -> None:
    error = _refused(region="us-moon-1")
    assert error.path == "region"
    assert "us-moon-1" in error.message


@pytest.mark.parametrize("region", ["cn-north-1", "us-gov-west-1"])
def test_a_region_of_another_partition_is_refused(laptop: SimAWS, region: str) -> None:
    error = _refused(region=region)
    assert error.path == "region"
    assert "which is not supported; choose a region outside China and GovCloud" in error.message
    assert laptop.calls == []


def test_a_region_without_a_default_network_is_told_with_what_makes_one(
    laptop: SimAWS, user: User
) -> None:
    ec2 = backends.ec2("us-west-1")
    for vpc in list(ec2.vpcs.values()):
        vpc.is_default = "false"
    with pytest.raises(NotFound) as caught:
        _found()
    assert "aws ec2 create-default-vpc --region us-west-1" in caught.value.hint


def test_machines_go_to_zones_that_have_their_type(laptop: SimAWS) -> None:
    offer = _found(region="us-east-1", machine="m+t4")
    ec2 = backends.ec2("us-east-1")
    zones = {ec2.get_subnet(subnet).availability_zone for subnet in offer.network.ids}
    assert zones
    assert len(zones) == len(offer.network.ids)
    assert "us-east-1e" not in zones  # which has none of them


@pytest.mark.parametrize(("wanted", "notes"), [(7, 1), (8, 0)])
def test_a_disk_is_at_least_as_large_as_the_image(laptop: SimAWS, wanted: int, notes: int) -> None:
    events: list[object] = []
    task = Task("#!/bin/sh\n", cloud="aws", disk_size=wanted)
    handle = sojourn.create(task, on_event=events.append)
    [template] = backends.ec2("us-west-1").launch_templates.values()
    [disk] = template.latest_version().data["BlockDeviceMappings"]
    assert disk["Ebs"]["VolumeSize"] == 8
    note = sojourn.Note("disk_size: using 8 GB, which the image 'ubuntu' needs")
    assert events.count(note) == notes
    handle.delete(fetch=False)


@pytest.mark.parametrize(
    ("machine", "name"),
    [
        ("m+t4", "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20250228"),
        (
            "g5g.xlarge",
            "Deep Learning ARM64 Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) 20250228",
        ),
    ],
)
def test_nvidia_is_the_newest_for_the_architecture_of_the_machine(
    laptop: SimAWS, machine: str, name: str
) -> None:
    found = _found(machine=machine, image="nvidia", region="us-west-2")
    assert _name_of(found) == name
    task = Task("#!/bin/sh\n", cloud="aws", machine=machine, image="nvidia", region="us-west-2")
    handle = sojourn.create(task)
    laptop.wait(laptop.instances)
    assert laptop.instances()[0].record.image_id == found.image.id
    handle.delete(fetch=False)


@pytest.mark.parametrize(
    ("machine", "chips"),
    [
        ("p3.2xlarge", "V100s"),
        ("p3dn.24xlarge", "V100s"),
        ("g3.4xlarge", "M60s"),
        ("g3s.xlarge", "M60s"),
    ],
)
@pytest.mark.parametrize("image", ["nvidia", "docker://python:3.12"])
def test_nvidia_is_refused_for_chips_that_its_driver_does_not_know(
    laptop: SimAWS, machine: str, chips: str, image: str
) -> None:
    error = _refused(machine=machine, image=image)
    assert error.path == "machine"
    assert f"does not support the {chips} of {machine}" in error.message
    assert "Proprietary Nvidia Driver" in error.message


@pytest.mark.parametrize(("machine", "count"), [("m+v100", 1), ("l+v100", 4), ("xl+v100", 8)])
@pytest.mark.parametrize("image", ["nvidia", "ubuntu"])
def test_another_machine_stands_in_for_one_with_v100s_and_the_user_is_warned(
    laptop: SimAWS, machine: str, count: int, image: str
) -> None:
    task = Task("#!/bin/sh\n", cloud="aws", machine=machine, image=image, region="us-west-2")
    offers = Offers(Account())
    found = offers.find(task)
    assert found.type.startswith("g5.")
    assert f"Using {found.type} for {machine}: AWS is retiring V100s" in offers.replaced(task)
    described = Account().call(
        "machine", "ec2", "us-west-2", "describe_instance_types", InstanceTypes=[found.type]
    )["InstanceTypes"][0]
    assert described["GpuInfo"]["Gpus"][0]["Count"] == count


@pytest.mark.parametrize(("machine", "count"), [("m+v100", 1), ("l+v100", 4), ("xl+v100", 8)])
@pytest.mark.parametrize("region", ["us-west", "us-east", "eu-north", "eu-west"])
@pytest.mark.parametrize("image", ["nvidia", "ubuntu"])
def test_each_region_with_a_common_name_has_what_stands_in(
    laptop: SimAWS, region: str, machine: str, count: int, image: str
) -> None:
    found = _found(machine=machine, image=image, region=region)
    [described] = Account().call(
        "machine", "ec2", found.region, "describe_instance_types", InstanceTypes=[found.type]
    )["InstanceTypes"]
    [gpus] = described["GpuInfo"]["Gpus"]
    assert gpus["Count"] >= count
    assert gpus["MemoryInfo"]["SizeInMiB"] >= 16 << 10
    assert found.type.startswith("g4dn." if region == "us-west" else "g5.")


def test_a_region_without_any_stand_in_is_refused_with_all_that_was_tried(
    laptop: SimAWS, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"xl+v100": ("g5.48xlarge", "g6.48xlarge")}
    monkeypatch.setattr(machine_types, "_STAND_INS", few)
    error = _refused(machine="xl+v100", image="nvidia")
    assert error.message == (
        "machine: AWS is retiring the V100s of xl+v100, and us-west-1 has none of g5.48xlarge, "
        "g6.48xlarge; use another region, such as us-east, or another machine"
    )
    assert "none of p3.16xlarge, g5.48xlarge" in _refused(machine="xl+v100").message
    assert _found(machine="xl+v100", image="nvidia", region="us-east").type == "g5.48xlarge"


def _private_subnet(user: User) -> str:
    """As people add them to the default network."""
    [vpc] = user.ec2.describe_vpcs()["Vpcs"]
    made = user.ec2.create_subnet(
        VpcId=vpc["VpcId"], CidrBlock="172.31.240.0/24", AvailabilityZone="us-west-1b"
    )
    return str(made["Subnet"]["SubnetId"])


def test_machines_go_to_default_subnets_and_not_to_others(laptop: SimAWS, user: User) -> None:
    default = set(user.subnets().split(","))
    private = _private_subnet(user)
    assert set(_found().network.ids) == default
    assert private not in default


def test_without_default_subnets_machines_go_to_public_ones(laptop: SimAWS, user: User) -> None:
    private, public = _private_subnet(user), ""
    for subnet in backends.ec2("us-west-1").describe_subnets():
        subnet.default_for_az = "false"
        if subnet.id != private and not public:
            public = subnet.id
        subnet.map_public_ip_on_launch = "true" if subnet.id == public else "false"
    assert _found().network.ids == (public,)


def test_without_a_public_subnet_it_is_told_how_to_make_one(laptop: SimAWS) -> None:
    for subnet in backends.ec2("us-west-1").describe_subnets():
        subnet.default_for_az = subnet.map_public_ip_on_launch = "false"
    with pytest.raises(NotFound, match="has no public subnet") as caught:
        _found()
    assert "aws ec2 create-default-subnet" in caught.value.hint


def test_all_generic_types_that_aws_still_has_can_be_had_somewhere(laptop: SimAWS) -> None:
    refused = set()
    for machine in ("s", "m", "l", "xl", "m+t4"):
        try:
            _found(machine=machine)
        except SojournError:
            refused.add(machine)
    assert refused == set()


@pytest.mark.parametrize(("field", "value"), [("disk_size", 65537), ("timeout", 10**9)])
def test_what_is_beyond_all_limits_is_refused(laptop: SimAWS, field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=r"must be at most \d+, got \d+") as caught:
        sojourn.create(Task("#!/bin/sh\n", cloud="aws", **{field: value}))  # type: ignore[arg-type]
    assert caught.value.path == field
    assert laptop.inventory() == []


def test_mounts_and_options_are_refused(laptop: SimAWS) -> None:
    task = Task("#!/bin/sh\n", cloud="aws", mounts={"/a": "b"}, options={"pod": "", "x": "y"})
    with pytest.raises(InvalidInput) as caught:
        sojourn.create(task)
    known = "network, ssh_from, ssh_key, vm_image, security_group"
    assert [str(problem) for problem in caught.value.problems] == [
        "mounts: not supported by AWS",
        f"options.pod: unknown option; must be one of {known}",
        f"options.x: unknown option; must be one of {known}",
    ]
    assert laptop.inventory() == []


def test_a_profile_that_is_not_there_is_refused(laptop: SimAWS) -> None:
    given = "arn:aws:iam::123456789012:instance-profile/team/nobody"
    with pytest.raises(InvalidInput, match="instance profile nobody not found") as caught:
        sojourn.create(Task("#!/bin/sh\n", cloud="aws", permission_set=given))
    assert caught.value.path == "permission_set"
    assert laptop.inventory() == []


@pytest.mark.parametrize("size", [-1, 20])
def test_no_disk_outlives_its_machine(laptop: SimAWS, size: int) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", disk_size=size))
    ec2 = Account().client("ec2", "us-west-1")
    found = ec2.describe_launch_template_versions(LaunchTemplateName=handle.id)
    [disk] = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["BlockDeviceMappings"]
    assert disk["Ebs"]["DeleteOnTermination"] is True
    assert disk["Ebs"].get("VolumeSize", -1) == size
    handle.delete(fetch=False)


def test_when_the_patience_is_over_the_reason_is_told(
    laptop: SimAWS, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaler, "_PATIENCE", 0.1)
    monkeypatch.setattr(scaler, "_UNKNOWN", re.compile("made this call fail"))
    laptop.fail("autoscaling:CreateAutoScalingGroup", code="ValidationError", status=400)
    with pytest.raises(InvalidInput, match=r"^group tpi-[\w-]+: A test made this call fail"):
        sojourn.create(Task("#!/bin/sh\n", cloud="aws"))
    assert laptop.inventory() == []


def _image(owner: str, name: str, like: str = "ubuntu-noble-24.04-amd64") -> str:
    """Another image, as somebody made it from one that is there."""
    amis = backends.ec2("us-west-1").amis
    [base, *_] = [image for image in amis.values() if like in str(image.name)]
    made = copy.copy(base)
    made.id, made.name, made.owner_id = f"ami-{len(amis):08x}", name, owner
    amis[made.id] = made
    return str(made.id)


def test_a_plain_name_is_an_image_of_ours(laptop: SimAWS) -> None:
    mine = _image(backends.ACCOUNT, "iterative-cml")
    _image("666666666666", "iterative-cml")
    assert _found(image="iterative-cml").image.id == mine
    assert parse_image("iterative-cml").user == "ubuntu"
    assert parse_image("admin@iterative-cml").user == "admin"


def test_a_plain_name_of_a_stranger_is_not_found(laptop: SimAWS) -> None:
    _image("666666666666", "iterative-cml")
    assert "not found in us-west-1" in _refused(image="iterative-cml").message


def test_an_image_by_its_id(laptop: SimAWS) -> None:
    other = _image("666666666666", "anything at all")
    assert _found(image=f"admin@{other}").image.id == other


@pytest.mark.parametrize(
    ("machine", "name"), [("m", "ubuntu-noble"), ("m+t4", "Nvidia Driver GPU"), ("g4ad.xlarge", "")]
)
def test_a_container_has_a_machine_image_below_it(laptop: SimAWS, machine: str, name: str) -> None:
    assert has_gpus(instance_type(machine)) is ("Nvidia" in name)
    if name:
        assert name in _name_of(_found(image="docker://python:3.12", machine=machine))


def test_the_machine_image_below_a_container_is_named_if_it_is_wrong(laptop: SimAWS) -> None:
    image = "docker://python:3.12"
    error = _refused(image=image, options={"vm_image": "a:b"})
    assert error.message.startswith("options.vm_image: must be {user}@{owner}")
    task = Task("#!/bin/sh", cloud="aws", image=image, options={"vm_image": "me@my-image"})
    assert Offers(Account()).user_of(task) == "me"
