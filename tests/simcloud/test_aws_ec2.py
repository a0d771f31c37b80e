"""What EC2 and IAM of a simulated AWS account have, make and refuse, without machines."""

from __future__ import annotations

from typing import Any

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import TRUST, User, refused

_PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody"
)


# IAM


def test_roles_and_profiles_in_use_stay(aws: SimAWS, user: User) -> None:
    user.make_profile()
    role, profile = {"RoleName": "a-role"}, {"InstanceProfileName": "a-profile"}
    iam = user.iam
    refused("EntityAlreadyExists", iam.create_role, **role, AssumeRolePolicyDocument=TRUST)
    refused("EntityAlreadyExists", iam.create_instance_profile, **profile)
    refused("LimitExceeded", iam.add_role_to_instance_profile, **role, **profile)
    refused("DeleteConflict", iam.delete_role, **role)
    refused("DeleteConflict", iam.delete_instance_profile, **profile)
    broken = {"PolicyName": "x", "PolicyDocument": "{"}
    refused("MalformedPolicyDocument", iam.put_role_policy, **role, **broken)
    assert (
        iam.get_instance_profile(**profile)["InstanceProfile"]["Roles"][0]["RoleName"] == "a-role"
    )
    assert aws.inventory() == ["policy a-role/rights", "profile a-profile", "role a-role"]
    iam.remove_role_from_instance_profile(**role, **profile)
    refused("DeleteConflict", iam.delete_role, **role)
    iam.delete_instance_profile(**profile)
    iam.delete_role_policy(**role, PolicyName="rights")
    iam.delete_role(**role)
    refused("NoSuchEntity", iam.get_role, **role)
    refused("NoSuchEntity", iam.delete_role, **role)
    refused("NoSuchEntity", iam.delete_instance_profile, **profile)
    refused("NoSuchEntity", iam.delete_role_policy, **role, PolicyName="rights")
    assert aws.inventory() == []


def test_ec2_learns_of_a_new_profile_after_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.profile_ready = 3600
    user.make_profile()
    user.make_template(IamInstanceProfile={"Name": "a-profile"})
    assert "Invalid IAM Instance Profile name" in refused("ValidationError", user.make_group)
    aws.advance(3600)
    user.make_group(1)
    user.in_service(1)


# EC2


def test_regions_zones_and_types_are_as_in_a_fresh_account(user: User) -> None:
    [vpc] = user.ec2.describe_vpcs()["Vpcs"]
    assert vpc["IsDefault"]
    subnets = user.ec2.describe_subnets()["Subnets"]
    zones = {subnet["AvailabilityZone"] for subnet in subnets}
    assert zones == {"us-west-1a", "us-west-1b"}
    far = user.in_region("us-east-1")
    offers = far.ec2.describe_instance_type_offerings(
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": ["m5.large"]}],
    )["InstanceTypeOfferings"]
    assert {offer["Location"][-1] for offer in offers} == set("abcdf")
    assert len(far.ec2.describe_subnets()["Subnets"]) == 6
    [kind] = far.ec2.describe_instance_types(InstanceTypes=["g4dn.xlarge"])["InstanceTypes"]
    assert kind["GpuInfo"]["Gpus"][0]["Count"] == 1
    refused("InvalidInstanceType", far.ec2.describe_instance_types, InstanceTypes=["m5.tiny"])
    far.close()


def test_the_newest_image_is_not_the_first(user: User) -> None:
    for name in ("jammy-22.04-amd64", "noble-24.04-arm64", "jammy-22.04-arm64"):
        found = user.ec2.describe_images(
            Owners=["099720109477"],
            Filters=[
                {"Name": "name", "Values": [f"ubuntu/images/hvm-ssd*/ubuntu-{name}-server-*"]},
                {"Name": "state", "Values": ["available"]},
                {"Name": "root-device-type", "Values": ["ebs"]},
                {"Name": "architecture", "Values": ["arm64" if "arm" in name else "x86_64"]},
            ],
        )["Images"]
        newest = max(found, key=lambda image: image["CreationDate"])
        assert len(found) == 3
        assert newest["Name"].endswith("20250305")
        assert newest["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 8
    deep = user.ec2.describe_images(
        Owners=["amazon"],
        Filters=[{"Name": "name", "Values": ["Deep Learning Base*(Ubuntu 22.04)*"]}],
    )["Images"]
    assert len(deep) == 3
    far = user.in_region("us-east-1")
    assert far.image() != user.image()
    refused("InvalidAMIID.NotFound", far.ec2.describe_images, ImageIds=[user.image()])
    far.close()


def test_key_pairs_security_groups_and_templates_have_unique_names(aws: SimAWS, user: User) -> None:
    ec2 = user.ec2
    key = {"KeyName": "a-key", "PublicKeyMaterial": _PUBLIC_KEY.encode()}
    ec2.import_key_pair(**key)
    refused("InvalidKeyPair.Duplicate", ec2.import_key_pair, **key)
    made = {"GroupName": "a-firewall", "Description": "none"}
    group = ec2.create_security_group(**made)["GroupId"]
    refused("InvalidGroup.Duplicate", ec2.create_security_group, **made)
    rule = {
        "IpProtocol": "tcp",
        "FromPort": 22,
        "ToPort": 22,
        "IpRanges": [{"CidrIp": "0.0.0.0/0"}],
    }
    opened = {"GroupId": group, "IpPermissions": [rule]}
    ec2.authorize_security_group_ingress(**opened)
    refused("InvalidPermission.Duplicate", ec2.authorize_security_group_ingress, **opened)
    user.make_template()
    refused("InvalidLaunchTemplateName.AlreadyExistsException", user.make_template)
    assert aws.inventory() == [
        "key pair a-key in us-west-1",
        "launch template a-template in us-west-1",
        "security group a-firewall in us-west-1",
    ]
    ec2.delete_key_pair(KeyName="a-key")
    ec2.delete_key_pair(KeyName="a-key")
    ec2.delete_security_group(GroupId=group)
    ec2.delete_launch_template(LaunchTemplateName="a-template")
    refused("InvalidGroup.NotFound", ec2.delete_security_group, GroupId=group)
    refused("InvalidKeyPair.NotFound", ec2.describe_key_pairs, KeyNames=["a-key"])
    for call, suffix in ((ec2.delete_launch_template, ""), (ec2.describe_launch_templates, "s")):
        for kind, name, code in (
            ("Name", "a-template", "InvalidLaunchTemplateName.NotFoundException"),
            ("Id", "lt-0123456789abcdef0", "InvalidLaunchTemplateId.NotFound"),
        ):
            given: Any = [name] if suffix else name
            refused(code, call, **{f"LaunchTemplate{kind}{suffix}": given})
    assert aws.inventory() == []


def test_user_data_has_a_limit(user: User) -> None:
    code = "InvalidUserData.Malformed"
    assert "16384" in refused(code, user.make_template, user_data=b"x" * 16385)
    refused(code, user.make_template, UserData="no base64!")
    user.make_template(b"x" * 16384)


def test_a_group_takes_no_template_that_cannot_work(user: User) -> None:
    for change, said in (
        ({"ImageId": "ami-0123456789abcdef0"}, "image id '[ami-0123456789abcdef0]' does not exist"),
        ({"InstanceType": "m5.tiny"}, "m5.tiny"),
        ({"InstanceType": "m6g.large"}, "architecture"),
        ({"KeyName": "missing"}, "key pair 'missing' does not exist"),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "security group"),
        ({"IamInstanceProfile": {"Name": "missing"}}, "Invalid IAM Instance Profile name"),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 4}}]},
            "smaller than snapshot",
        ),
    ):
        user.make_template(**change)
        assert said in refused("ValidationError", user.make_group)
        user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    assert "does not exist" in refused("ValidationError", user.make_group)


def test_instances_are_what_their_template_says(aws: SimAWS, user: User) -> None:
    user.make_profile()
    user.ec2.import_key_pair(KeyName="a-key", PublicKeyMaterial=_PUBLIC_KEY.encode())
    made = {"GroupName": "a-firewall", "Description": "none"}
    firewall = user.ec2.create_security_group(**made)["GroupId"]
    user.make_template(
        b"#!/bin/sh\n",
        KeyName="a-key",
        SecurityGroupIds=[firewall],
        IamInstanceProfile={"Name": "a-profile"},
        InstanceMarketOptions={"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.1"}},
        BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 30}}],
        TagSpecifications=[
            {"ResourceType": kind, "Tags": [{"Key": "of", "Value": kind}]}
            for kind in ("instance", "volume")
        ],
    )
    user.make_group(1, Tags=[{"Key": "task", "Value": "one", "PropagateAtLaunch": True}])
    [name] = user.in_service(1)
    filters = [{"Name": "tag:task", "Values": ["one"]}]
    [reservation] = user.ec2.describe_instances(Filters=filters)["Reservations"]
    [instance] = reservation["Instances"]
    assert instance["InstanceId"] == name
    assert instance["InstanceLifecycle"] == "spot"
    assert instance["State"]["Name"] == "running"
    assert instance["KeyName"] == "a-key"
    assert instance["IamInstanceProfile"]["Arn"].endswith(":instance-profile/a-profile")
    assert instance["MetadataOptions"]["HttpTokens"] == "required"
    assert instance["SecurityGroups"] == [{"GroupId": firewall, "GroupName": "a-firewall"}]
    assert instance["PublicIpAddress"]
    tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
    assert tags["aws:autoscaling:groupName"] == "a-group"
    assert (tags["of"], tags["task"]) == ("instance", "one")
    [volume] = user.ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["Tags"]) == (30, [{"Key": "of", "Value": "volume"}])
    assert (
        len(
            [
                line
                for line in aws.inventory()
                if line.split()[0] in ("instance", "volume", "network", "spot")
            ]
        )
        == 4
    )

    message = refused("DependencyViolation", user.ec2.delete_security_group, GroupId=firewall)
    assert firewall in message
    user.delete_group()
    user.ec2.delete_security_group(GroupId=firewall)
    user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    user.ec2.delete_key_pair(KeyName="a-key")
    user.remove_profile()
    assert aws.inventory() == []
    [reservation] = user.ec2.describe_instances()["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] == "terminated"


def test_ec2_learns_of_a_new_security_group_after_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.group_ready = 3600
    aws.timing.group_usable = 7200
    made = user.ec2.create_security_group(GroupName="a-group", Description="a group")
    which = {"GroupId": made["GroupId"]}
    code, named = "InvalidGroup.NotFound", [{"Name": "group-name", "Values": ["a-group"]}]
    refused(code, user.ec2.authorize_security_group_ingress, **which, IpPermissions=[])
    assert user.ec2.describe_security_groups(Filters=named)["SecurityGroups"] == []
    user.make_template(SecurityGroupIds=[made["GroupId"]])
    aws.advance(3600)
    assert len(user.ec2.describe_security_groups(Filters=named)["SecurityGroups"]) == 1
    said = refused("ValidationError", user.make_group)
    assert f"The security group '{made['GroupId']}' does not exist" in said
    aws.advance(3600)
    user.make_group(1)
    user.in_service(1)


def test_ec2_learns_of_a_new_instance_after_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.instance_ready = 3600
    user.make_template()
    user.make_group(1)
    [instance] = user.in_service(1)
    named = [{"Name": "instance-id", "Values": [instance]}]
    look = user.ec2.describe_instances
    assert instance in refused("InvalidInstanceID.NotFound", look, InstanceIds=[instance])
    assert look(Filters=named)["Reservations"] == []
    aws.advance(3600)
    assert look(InstanceIds=[instance])["Reservations"] == look(Filters=named)["Reservations"]


def test_a_disk_that_is_to_stay_is_found_afterwards(aws: SimAWS, user: User) -> None:
    extra = {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 1}}
    user.make_template(BlockDeviceMappings=[extra])
    user.make_group(1)
    user.in_service(1)
    user.delete_group()
    [left] = [line for line in aws.inventory() if "template" not in line]
    assert left.startswith("volume")
