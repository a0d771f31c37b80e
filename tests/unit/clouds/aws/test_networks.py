"""Networks that users choose, who may connect, and what accounts demand."""

from __future__ import annotations

from typing import Any

import pytest

import sojourn
from sojourn.clouds.aws.account import Account
from sojourn.clouds.aws.machines import Offers
from sojourn.clouds.aws.networks import Subnets
from sojourn.core.errors import InvalidInput, NotFound
from sojourn.core.task import Task
from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User
from tests.unit.clouds.vm import doors


@pytest.fixture
def vpc(user: User) -> str:
    return str(user.ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"])


def _subnet(user: User, vpc: str, number: int, *, public: bool, zone: str = "us-west-1a") -> str:
    made = user.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{number}.0/24", AvailabilityZone=zone)
    id = str(made["Subnet"]["SubnetId"])  # noqa: A001
    if public:
        user.ec2.modify_subnet_attribute(SubnetId=id, MapPublicIpOnLaunch={"Value": True})
    return id


def _network(given: str) -> Subnets:
    task = Task("#!/bin/sh\n", cloud="aws", options={"network": given})
    return Offers(Account()).find(task).network


def _refused(given: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        _network(given)
    assert caught.value.path == "options.network"
    return caught.value.message


def test_a_vpc_has_public_and_private_subnets(laptop: SimAWS, user: User, vpc: str) -> None:
    public = _subnet(user, vpc, 1, public=True)
    private = _subnet(user, vpc, 2, public=False)
    assert _network(vpc) == Subnets(vpc, (public,), ("us-west-1a",), True)
    assert _network(f"{vpc},private") == Subnets(vpc, (private,), ("us-west-1a",), False)


def test_a_vpc_without_a_public_subnet(laptop: SimAWS, user: User, vpc: str) -> None:
    _subnet(user, vpc, 1, public=False)
    assert "has no public subnet in a zone that offers" in _refused(vpc)


def test_subnets_by_name(laptop: SimAWS, user: User, vpc: str) -> None:
    first = _subnet(user, vpc, 1, public=False)
    second = _subnet(user, vpc, 2, public=False, zone="us-west-1b")
    assert _network(f"{second},{first}") == Subnets(
        vpc, (first, second), ("us-west-1a", "us-west-1b"), True
    )
    assert _network(f"{first},private") == Subnets(vpc, (first,), ("us-west-1a",), False)


def test_what_is_not_there_is_refused(laptop: SimAWS, user: User, vpc: str) -> None:
    here = _subnet(user, vpc, 1, public=True)
    other = user.subnets().split(",")[0]
    assert "must be a VPC such as" in _refused("my-network")
    assert "no subnet found in us-west-1 for subnet-0123" in _refused("subnet-0123")
    assert "must be subnets of one VPC" in _refused(f"{here},{other}")


def test_without_a_default_vpc_the_option_is_told(laptop: SimAWS, user: User) -> None:
    [default] = user.ec2.describe_vpcs()["Vpcs"]
    for subnet in user.subnets().split(","):
        user.ec2.delete_subnet(SubnetId=subnet)
    user.ec2.delete_vpc(VpcId=default["VpcId"])
    with pytest.raises(NotFound) as caught:
        _network("")
    assert "--option network=vpc-" in caught.value.hint


def _template(user: User, name: str) -> dict[str, Any]:
    found = user.ec2.describe_launch_template_versions(
        LaunchTemplateName=name, Versions=["$Latest"]
    )
    return dict(found["LaunchTemplateVersions"][0]["LaunchTemplateData"])


def _rules(user: User, name: str) -> list[Any]:
    named: Any = [{"Name": "group-name", "Values": [name]}]
    [group] = user.ec2.describe_security_groups(Filters=named)["SecurityGroups"]
    return list(group["IpPermissions"])


def test_machines_in_a_private_network_have_no_public_address(
    laptop: SimAWS, user: User, vpc: str
) -> None:
    private = _subnet(user, vpc, 1, public=False)
    options = {"network": f"{private},private", "ssh_from": "10.0.0.0/8,2001:db8::/32"}
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", options=options))
    [card] = _template(user, str(handle.id))["NetworkInterfaces"]
    assert card["AssociatePublicIpAddress"] is False
    [rule] = _rules(user, str(handle.id))
    assert [each["CidrIp"] for each in rule["IpRanges"]] == ["10.0.0.0/8"]
    assert [each["CidrIpv6"] for each in rule["Ipv6Ranges"]] == ["2001:db8::/32"]
    handle.delete()


@pytest.mark.slow  # a task for each
def test_the_firewall_lets_in_who_may_connect(laptop: SimAWS) -> None:
    doors.ssh_from_decides_who_gets_in(laptop, "aws")


def test_nobody_may_connect(laptop: SimAWS, user: User) -> None:
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", options={"ssh_from": "none"}))
    assert _rules(user, str(handle.id)) == []
    handle.delete()


def test_tags_and_a_boundary_that_the_account_demands(
    laptop: SimAWS, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    boundary = "arn:aws:iam::aws:policy/ReadOnlyAccess"
    monkeypatch.setenv("SOJOURN_TAGS", "cost-center=42")
    monkeypatch.setenv("SOJOURN_AWS_PERMISSIONS_BOUNDARY", boundary)
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws"))
    role = user.iam.get_role(RoleName=str(handle.id))["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == boundary
    assert {"Key": "cost-center", "Value": "42"} in role["Tags"]
    handle.delete()


def _own_group(user: User, vpc: str, name: str = "office") -> str:
    made = user.ec2.create_security_group(GroupName=name, Description="theirs", VpcId=vpc)
    return str(made["GroupId"])


@pytest.mark.parametrize("by_name", [True, False])
def test_a_security_group_of_the_users_own_decides_who_gets_in(
    laptop: SimAWS, user: User, vpc: str, by_name: bool
) -> None:
    subnet = _subnet(user, vpc, 1, public=True)
    group = _own_group(user, vpc)
    options = {"security_group": "office" if by_name else group}
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", options=options))
    [card] = _template(user, str(handle.id))["NetworkInterfaces"]
    assert len(card["Groups"]) == 2
    assert group in card["Groups"]
    assert _rules(user, str(handle.id)) == []
    assert Offers(Account()).find(handle.task()).network == Subnets(
        vpc, (subnet,), ("us-west-1a",), True
    )
    handle.delete()
    kept = user.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert [each["GroupName"] for each in kept] == ["office"]


def test_ssh_from_counts_beside_the_users_own_group(laptop: SimAWS, user: User, vpc: str) -> None:
    _subnet(user, vpc, 1, public=True)
    options = {"security_group": _own_group(user, vpc), "ssh_from": "10.0.0.0/8"}
    handle = sojourn.create(Task("#!/bin/sh\n", cloud="aws", options=options))
    [rule] = _rules(user, str(handle.id))
    assert [each["CidrIp"] for each in rule["IpRanges"]] == ["10.0.0.0/8"]
    handle.delete()


def test_security_groups_that_do_not_fit_are_refused(laptop: SimAWS, user: User, vpc: str) -> None:
    subnet = _subnet(user, vpc, 1, public=True)
    default = user.ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])
    elsewhere = _own_group(user, default["Vpcs"][0]["VpcId"])
    _own_group(user, vpc)
    refused = {
        ("absent", ""): "security group 'absent' not found in us-west-1",
        ("sg-0123456789abcdef0", ""): "not found in us-west-1",
        ("office", ""): "'office' means several security groups: sg-",
        (elsewhere, subnet): f"not in {vpc}",
    }
    for (group, network), why in refused.items():
        options = {"security_group": group, **({"network": network} if network else {})}
        with pytest.raises(InvalidInput, match=why) as caught:
            sojourn.check(Task("#!/bin/sh\n", cloud="aws", options=options))
        assert caught.value.path == "options.security_group"
