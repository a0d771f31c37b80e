"""The API of a simulated AWS account, without machines: what it refuses and what groups do."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError
from obstore.store import S3Store

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws.clock import Timing
from tests.simcloud.aws.market import Refusal
from tests.simcloud.aws_user import TRUST, User, allow, refused
from tests.support.waiting import until

_PUBLIC_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl nobody"
)


@pytest.fixture
def aws() -> Iterator[SimAWS]:
    before = threading.enumerate()
    with SimAWS() as aws:
        yield aws
    assert threading.enumerate() == before


@pytest.fixture
def user(aws: SimAWS) -> Iterator[User]:
    user = User(aws.environment())
    yield user
    user.close()


def _in_service(user: User, count: int) -> list[str]:
    until(lambda: len(user.members()) == count, 10)
    return user.members()


def _delete_group(user: User) -> None:
    user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="a-group", ForceDelete=True)
    until(lambda: not user.group(), 10)


# Who calls


def test_requests_have_to_be_signed_with_the_right_secret(aws: SimAWS) -> None:
    for change, codes in (
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, ("SignatureDoesNotMatch", "AuthFailure")),
        ({"AWS_ACCESS_KEY_ID": "AKIAAAAAAAAAAAAAAAAA"}, ("InvalidClientTokenId", "AuthFailure")),
        ({"AWS_SESSION_TOKEN": "made up"}, ("InvalidClientTokenId", "AuthFailure")),
    ):
        user = User({**aws.environment(), **change})
        refused(codes[0], user.sts.get_caller_identity)
        refused(codes[1], user.ec2.describe_vpcs)
        refused(codes[0], user.autoscaling.describe_auto_scaling_groups)
        code = codes[0] if "Signature" in codes[0] else "InvalidAccessKeyId"
        refused(code, user.s3.list_buckets)
        user.close()
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(f"{aws.endpoint}/a-bucket/key")
    assert caught.value.code == 403
    caught.value.close()


def test_presigned_addresses_work_for_a_while(user: User) -> None:
    bucket = user.make_bucket()
    user.s3.put_object(Bucket=bucket, Key="a b", Body=b"content")
    where = {"Bucket": bucket, "Key": "a b"}
    good = user.s3.generate_presigned_url("get_object", Params=where, ExpiresIn=60)
    late = user.s3.generate_presigned_url("get_object", Params=where, ExpiresIn=0)
    with urllib.request.urlopen(good) as answer:
        assert answer.read() == b"content"
    time.sleep(1.1)
    for url in (late, re.sub("Signature=.", "Signature=x", good)):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url)
        assert caught.value.code == 403
        caught.value.close()


def test_a_user_may_do_what_its_policy_says_and_no_more(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    user.s3.put_object(Bucket=bucket, Key="mine/a", Body=b"")
    other = User(
        aws.user(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"},
                    {"Effect": "Deny", "Action": "ec2:DescribeVpcs", "Resource": "*"},
                    {
                        "Effect": "Allow",
                        "Action": ["s3:GetObject", "s3:DeleteObject"],
                        "Resource": f"arn:aws:s3:::{bucket}/mine/*",
                    },
                    {
                        "Effect": "Allow",
                        "Action": "s3:ListBucket",
                        "Resource": f"arn:aws:s3:::{bucket}",
                        "Condition": {"StringLike": {"s3:prefix": "mine/*"}},
                    },
                ],
            }
        )
    )
    other.sts.get_caller_identity()
    other.ec2.describe_subnets()
    refused("UnauthorizedOperation", other.ec2.describe_vpcs)
    refused("AccessDenied", other.autoscaling.describe_auto_scaling_groups)
    refused("AccessDenied", other.s3.list_buckets)
    refused("AccessDenied", other.iam.get_role, RoleName="a-role")
    assert other.s3.get_object(Bucket=bucket, Key="mine/a")
    refused("AccessDenied", other.s3.get_object, Bucket=bucket, Key="theirs")
    refused("AccessDenied", other.s3.put_object, Bucket=bucket, Key="mine/a", Body=b"")
    assert other.s3.list_objects_v2(Bucket=bucket, Prefix="mine/")["KeyCount"] == 1
    refused("AccessDenied", other.s3.list_objects_v2, Bucket=bucket)
    many = {"Objects": [{"Key": "mine/a"}, {"Key": "theirs"}]}
    refused("AccessDenied", other.s3.delete_objects, Bucket=bucket, Delete=many)
    source = {"Bucket": bucket, "Key": "mine/a"}
    refused("AccessDenied", other.s3.copy_object, Bucket=bucket, Key="mine/b", CopySource=source)
    other.close()


def test_who_may_not_list_does_not_learn_what_is_missing(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    other = User(aws.user(allow("s3:GetObject")))
    refused("AccessDenied", other.s3.get_object, Bucket=bucket, Key="missing")
    refused("403", other.s3.head_object, Bucket=bucket, Key="missing")
    refused("NoSuchKey", user.s3.get_object, Bucket=bucket, Key="missing")
    refused("404", user.s3.head_object, Bucket=bucket, Key="missing")
    other.close()


def test_denials_of_ec2_can_be_decoded_by_who_may(aws: SimAWS, user: User) -> None:
    other = User(aws.user(allow("s3:*")))
    said = refused("UnauthorizedOperation", other.ec2.describe_images)
    message = said.rpartition(" ")[2]
    refused("AccessDenied", other.sts.decode_authorization_message, EncodedMessage=message)
    decoded = user.sts.decode_authorization_message(EncodedMessage=message)["DecodedMessage"]
    assert json.loads(decoded)["context"]["action"] == "ec2:DescribeImages"
    refused(
        "InvalidAuthorizationMessageException",
        user.sts.decode_authorization_message,
        EncodedMessage="nonsense",
    )
    other.close()


def test_a_group_needs_the_rights_to_launch_and_to_pass_the_role(aws: SimAWS, user: User) -> None:
    user.make_profile()
    user.make_template(IamInstanceProfile={"Name": "a-profile"})
    basic = ("autoscaling:*", "ec2:Describe*")
    role = "arn:aws:iam::123456789012:role/a-role"
    for policy, missing in (
        (allow(*basic, "iam:PassRole"), "ec2:RunInstances"),
        (allow(*basic, "ec2:RunInstances"), "iam:PassRole"),
    ):
        other = User(aws.user(policy))
        assert missing in refused("AccessDenied", other.make_group)
        other.close()
    policy = allow(*basic, "ec2:RunInstances")
    policy["Statement"].append(
        {
            "Effect": "Allow",
            "Action": "iam:PassRole",
            "Resource": role,
            "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
        }
    )
    other = User(aws.user(policy))
    other.make_group()
    other.close()


def test_rights_may_depend_on_tags(aws: SimAWS, user: User) -> None:
    user.make_template()
    user.make_group(1, Tags=[{"Key": "task", "Value": "one"}])
    [instance] = _in_service(user, 1)

    def only(value: str) -> User:
        condition = {"StringEquals": {"aws:ResourceTag/task": value}}
        return User(aws.user(allow("autoscaling:*", "ec2:*", Condition=condition)))

    for other, may in ((only("two"), False), (only("one"), True)):
        for call, given in (
            (other.set_desired, {"desired": 1}),
            (other.ec2.terminate_instances, {"InstanceIds": [instance]}),
        ):
            if may:
                call(**given)
            else:
                code = "AccessDenied" if call == other.set_desired else "UnauthorizedOperation"
                refused(code, call, **given)
        other.close()


def test_calls_are_written_down(aws: SimAWS, user: User) -> None:
    aws.calls.clear()
    user.ec2.describe_vpcs()
    refused("NoSuchBucket", user.s3.list_objects_v2, Bucket="missing")
    assert [(call.name, call.region, call.error) for call in aws.calls] == [
        ("ec2:DescribeVpcs", "us-west-1", ""),
        ("s3:ListObjectsV2", "us-west-1", "NoSuchBucket"),
    ]
    assert {call.who for call in aws.calls} == {"arn:aws:iam::123456789012:user/administrator"}


def test_what_the_simulation_cannot_do_is_told_at_the_end() -> None:
    account = SimAWS().__enter__()
    user = User(account.environment())
    refused("NotImplemented", user.ec2.run_instances, MinCount=1, MaxCount=1)
    user.close()
    with pytest.raises(AssertionError, match="RunInstances"):
        account.__exit__(None)


# Calls that fail because the test says so


def test_calls_fail_before_or_after_their_effect(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    aws.fail("s3:PutObject", code="ServiceUnavailable", status=503)
    refused("ServiceUnavailable", user.s3.put_object, Bucket=bucket, Key="a", Body=b"")
    assert user.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    aws.fail("s3:PutObject", after=True)
    refused("InternalError", user.s3.put_object, Bucket=bucket, Key="a", Body=b"")
    assert user.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 1
    aws.fail("ec2:Describe*", nth=2, times=2)
    user.ec2.describe_vpcs()
    refused("InternalError", user.ec2.describe_vpcs)
    refused("InternalError", user.ec2.describe_subnets)
    user.ec2.describe_vpcs()
    aws.fail("*", who="arn:aws:sts::*")
    user.ec2.describe_vpcs()
    aws.heal()


def test_each_service_throttles_in_its_own_words(aws: SimAWS, user: User) -> None:
    aws.throttle(times=4)
    refused("Throttling", user.autoscaling.describe_auto_scaling_groups)
    refused("RequestLimitExceeded", user.ec2.describe_vpcs)
    refused("SlowDown", user.s3.list_buckets)
    refused("Throttling", user.iam.get_role, RoleName="a-role")
    user.ec2.describe_vpcs()


def test_calls_can_take_long_without_holding_up_others(aws: SimAWS, user: User) -> None:
    user.ec2.describe_vpcs()
    aws.delay(0.3)
    start = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: user.ec2.describe_vpcs(), range(4)))
    assert 0.3 < time.monotonic() - start < 1.0


# S3


def test_buckets_are_of_one_region_and_have_to_be_empty_to_go(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    refused("BucketAlreadyOwnedByYou", user.make_bucket)
    aws.foreign_bucket("of-others")
    refused("BucketAlreadyExists", user.make_bucket, name="of-others")
    refused("403", user.s3.head_bucket, Bucket="of-others")
    refused("IllegalLocationConstraintException", user.s3.create_bucket, Bucket="no-place")
    tags = {"TagSet": [{"Key": "a", "Value": "b"}]}
    user.s3.put_bucket_tagging(Bucket=bucket, Tagging=tags)
    assert user.s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tags["TagSet"]
    assert [b["Name"] for b in user.s3.list_buckets()["Buckets"]] == [bucket]
    user.s3.put_object(Bucket=bucket, Key="a", Body=b"")
    store = S3Store(
        bucket,
        endpoint=aws.endpoint,
        access_key_id=aws.environment()["AWS_ACCESS_KEY_ID"],
        secret_access_key=aws.environment()["AWS_SECRET_ACCESS_KEY"],
        region="eu-west-1",
        client_options={"allow_http": True},
    )
    with pytest.raises(Exception, match="expecting 'us-west-1'"):
        obstore.put(store, "b", b"")
    refused("BucketNotEmpty", user.s3.delete_bucket, Bucket=bucket)
    user.remove_bucket()
    refused("NoSuchBucket", user.s3.delete_bucket, Bucket=bucket)
    refused("404", user.s3.head_bucket, Bucket=bucket)
    assert aws.inventory() == []


def test_a_new_bucket_may_be_missing_for_a_while(aws: SimAWS, user: User) -> None:
    aws.timing.bucket_ready = 60
    bucket = user.make_bucket()
    refused("NoSuchBucket", user.s3.put_object, Bucket=bucket, Key="a", Body=b"")
    refused("404", user.s3.head_bucket, Bucket=bucket)
    aws.advance(60)
    user.s3.put_object(Bucket=bucket, Key="a", Body=b"")


def test_versions_and_uploads_are_found_and_can_be_removed(aws: SimAWS, user: User) -> None:
    bucket = user.make_bucket()
    where = {"Bucket": bucket}
    enabled = {"Status": "Enabled"}
    user.s3.put_bucket_versioning(**where, VersioningConfiguration=enabled)
    for body in (b"1", b"2"):
        user.s3.put_object(**where, Key="a", Body=body)
    user.s3.delete_object(**where, Key="a")
    user.s3.create_multipart_upload(**where, Key="b")
    assert aws.inventory() == [
        "bucket a-bucket",
        "delete marker a-bucket/a",
        "object a-bucket/a",
        "object a-bucket/a",
        "upload a-bucket/b",
    ]
    [upload] = user.s3.list_multipart_uploads(**where)["Uploads"]
    user.s3.abort_multipart_upload(**where, Key="b", UploadId=upload["UploadId"])
    listed = user.s3.list_object_versions(**where)
    for version in [*listed["Versions"], *listed["DeleteMarkers"]]:
        user.s3.delete_object(**where, Key="a", VersionId=version["VersionId"])
    user.s3.delete_bucket(**where)
    assert aws.inventory() == []


@pytest.fixture
def store(aws: SimAWS, user: User) -> S3Store:
    environment = aws.environment()
    return S3Store(
        user.make_bucket(),
        endpoint=aws.endpoint,
        access_key_id=environment["AWS_ACCESS_KEY_ID"],
        secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
        region=user.region,
        client_options={"allow_http": True},
    )


def test_one_of_many_creators_wins(store: S3Store) -> None:
    def create(path: str, number: int) -> bool:
        try:
            obstore.put(store, path, str(number).encode(), mode="create")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        for turn in range(5):
            path = f"race/{turn}"
            won = list(pool.map(lambda number, path=path: create(path, number), range(16)))
            assert won.count(True) == 1
            assert obstore.get(store, path).bytes() == str(won.index(True)).encode()


def test_obstore_finds_all_that_it_needs(store: S3Store) -> None:
    content = bytes(range(256)) * 4
    for number in range(30):
        obstore.put(store, f"many/{number:02} ü+%", content)
    listed = [
        meta["path"] for page in obstore.list(store, "many/", offset="many/19 ü+%") for meta in page
    ]
    assert sorted(listed) == [f"many/{number:02} ü+%" for number in range(20, 30)]
    assert obstore.get_range(store, listed[0], start=10, end=20).to_bytes() == content[10:20]
    two = obstore.get_ranges(store, listed[0], starts=[0, 1000], ends=[4, 1010])
    assert [bytes(each) for each in two] == [content[:4], content[1000:1010]]
    assert obstore.head(store, listed[0])["size"] == len(content)
    obstore.copy(store, listed[0], "copy")
    assert obstore.get(store, "copy").bytes() == content
    obstore.delete(store, [f"many/{number:02} ü+%" for number in range(30)])
    assert [meta["path"] for page in obstore.list(store) for meta in page] == ["copy"]
    big = content * 12 * 1024
    obstore.put(store, "big", big, use_multipart=True, chunk_size=5 << 20)
    assert obstore.get(store, "big").bytes() == big
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "missing")


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
    aws.timing.profile_ready = 10
    user.make_profile()
    user.make_template(IamInstanceProfile={"Name": "a-profile"})
    assert "Invalid IAM Instance Profile name" in refused("ValidationError", user.make_group)
    aws.advance(10)
    user.make_group(1)
    _in_service(user, 1)


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
    [name] = _in_service(user, 1)
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
    _delete_group(user)
    user.ec2.delete_security_group(GroupId=firewall)
    user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    user.ec2.delete_key_pair(KeyName="a-key")
    user.remove_profile()
    assert aws.inventory() == []
    [reservation] = user.ec2.describe_instances()["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] == "terminated"


def test_a_disk_that_is_to_stay_is_found_afterwards(aws: SimAWS, user: User) -> None:
    extra = {"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 1}}
    user.make_template(BlockDeviceMappings=[extra])
    user.make_group(1)
    _in_service(user, 1)
    _delete_group(user)
    [left] = [line for line in aws.inventory() if "template" not in line]
    assert left.startswith("volume")


# Groups


def test_groups_are_checked_when_they_are_made(user: User) -> None:
    user.make_template()
    wrong = "ValidationError"
    assert "subnet" in refused(wrong, user.make_group, VPCZoneIdentifier="subnet-0123")
    assert "Zone" in refused(wrong, user.make_group, VPCZoneIdentifier=" ")
    refused(wrong, user.make_group, desired=6)
    refused(wrong, user.make_group, MinSize=2, MaxSize=1)
    user.make_group()
    assert "already exists" in refused("AlreadyExists", user.make_group)
    assert "above max value 5" in refused(wrong, user.set_desired, desired=6)
    name = {"AutoScalingGroupName": "missing"}
    for call, given in (
        (user.autoscaling.set_desired_capacity, {"DesiredCapacity": 1}),
        (user.autoscaling.update_auto_scaling_group, {"MaxSize": 1}),
        (user.autoscaling.delete_auto_scaling_group, {}),
        (user.autoscaling.describe_scaling_activities, {}),
    ):
        assert "not found" in refused(wrong, call, **name, **given)
    found = user.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=["missing"])
    assert found["AutoScalingGroups"] == []


def test_groups_are_found_by_name_and_tags_in_pages(user: User) -> None:
    user.make_template()
    for number in range(3):
        tags = [{"Key": "number", "Value": str(number)}, {"Key": "ours", "Value": "yes"}]
        user.make_group(AutoScalingGroupName=f"group-{number}", Tags=tags)

    def find(*filters: tuple[str, str], **more: Any) -> list[str]:
        given = [{"Name": name, "Values": [value]} for name, value in filters]
        pages = user.autoscaling.get_paginator("describe_auto_scaling_groups")
        found = pages.paginate(Filters=given, **more)
        return [
            group["AutoScalingGroupName"] for page in found for group in page["AutoScalingGroups"]
        ]

    assert find(("tag:number", "1")) == ["group-1"]
    assert find(("tag-key", "ours"), PaginationConfig={"PageSize": 2}) == [
        f"group-{n}" for n in range(3)
    ]
    assert find(("tag:ours", "yes"), ("tag:number", "2")) == ["group-2"]
    assert find(("tag:ours", "no")) == []
    tag = {
        "ResourceId": "group-0",
        "ResourceType": "auto-scaling-group",
        "PropagateAtLaunch": False,
    }
    user.autoscaling.create_or_update_tags(Tags=[{**tag, "Key": "ours", "Value": "no"}])
    assert find(("tag:ours", "no")) == ["group-0"]


def test_a_group_grows_and_shrinks_and_tells_about_it(user: User) -> None:
    user.make_template()
    user.make_group()
    user.set_desired(2)
    _in_service(user, 2)
    user.set_desired(1)
    until(lambda: len(user.group()["Instances"]) == 1, 10)
    last, second, first = user.activities()
    for activity in (last, second, first):
        assert activity["StatusCode"] == "Successful"
        assert activity["EndTime"] >= activity["StartTime"]
        assert json.loads(activity["Details"])["Availability Zone"].startswith("us-west-1")
    assert last["Description"].startswith("Terminating EC2 instance: i-")
    assert "shrinking the capacity from 2 to 1" in last["Cause"]
    assert second["Description"].startswith("Launching a new EC2 instance: i-")
    assert "increasing the capacity from 0 to 1" in first["Cause"]


def test_a_group_with_instances_goes_only_by_force_and_not_at_once() -> None:
    with SimAWS(timing=Timing(deletion=30)) as aws:
        user = User(aws.environment())
        user.make_template()
        user.make_group(1)
        [name] = _in_service(user, 1)
        group = {"AutoScalingGroupName": "a-group"}
        delete = user.autoscaling.delete_auto_scaling_group
        until(lambda: user.activities()[0]["StatusCode"] == "Successful")
        refused("ResourceInUse", delete, **group)
        delete(**group, ForceDelete=True)
        assert user.group()["Status"] == "Delete in progress"
        assert "pending delete" in refused("AlreadyExists", user.make_group)
        assert "pending delete" in refused("ValidationError", user.set_desired, desired=0)
        until(lambda: not user.group()["Instances"])
        assert user.group()["Status"] == "Delete in progress"
        aws.advance(30)
        until(lambda: not user.group())
        past = user.autoscaling.describe_scaling_activities(IncludeDeletedGroups=True)
        assert name in past["Activities"][0]["Description"]
        user.ec2.delete_launch_template(LaunchTemplateName="a-template")
        assert aws.inventory() == []
        user.close()


def test_a_launch_in_progress_keeps_a_group(aws: SimAWS, user: User) -> None:
    aws.timing.launch = 60
    user.make_template()
    user.make_group(1)
    until(lambda: user.members("Pending"), 10)
    [name] = user.members("Pending")
    [reservation] = user.ec2.describe_instances(InstanceIds=[name])["Reservations"]
    assert reservation["Instances"][0]["State"]["Name"] == "pending"
    delete = user.autoscaling.delete_auto_scaling_group
    refused("ScalingActivityInProgress", delete, AutoScalingGroupName="a-group")
    aws.advance(60)
    assert _in_service(user, 1) == [name]


def test_what_is_lost_is_replaced(aws: SimAWS, user: User) -> None:
    user.make_template(spot=True)
    user.make_group(1)
    [first] = _in_service(user, 1)
    answer = user.ec2.terminate_instances(InstanceIds=[first])["TerminatingInstances"]
    assert answer[0]["PreviousState"]["Name"] == "running"
    assert answer[0]["CurrentState"]["Name"] in ("shutting-down", "terminated")
    until(lambda: user.members() not in ([], [first]), 10)
    [second] = user.members()
    aws.interrupt(second, notice=False)
    until(lambda: user.members() not in ([], [second]), 10)
    [third] = user.members()
    aws.timing.notice = 120
    aws.interrupt(third, notice=True)
    assert user.members() == [third]
    aws.advance(120)
    until(lambda: user.members() not in ([], [third]), 10)
    terminations = [a for a in user.activities() if "Terminating" in a["Description"]]
    assert len(terminations) == 3
    assert all("EC2 health check" in activity["Cause"] for activity in terminations)
    [reservation] = user.ec2.describe_instances(InstanceIds=[second])["Reservations"]
    reason = reservation["Instances"][0]["StateReason"]["Code"]
    assert reason == "Server.SpotInstanceTermination"
    missing = ["i-0123456789abcdef0"]
    refused("InvalidInstanceID.NotFound", user.ec2.terminate_instances, InstanceIds=missing)


def test_an_instance_can_leave_its_group_for_good(user: User) -> None:
    user.make_template()
    user.make_group(2)
    first, second = _in_service(user, 2)
    leave = user.autoscaling.terminate_instance_in_auto_scaling_group
    answer = leave(InstanceId=first, ShouldDecrementDesiredCapacity=True)["Activity"]
    assert "shrinking the capacity from 2 to 1" in answer["Cause"]
    until(lambda: len(user.group()["Instances"]) == 1, 10)
    assert user.group()["DesiredCapacity"] == 1
    leave(InstanceId=second, ShouldDecrementDesiredCapacity=False)
    until(lambda: user.members() not in ([], [second]), 10)
    user.autoscaling.update_auto_scaling_group(AutoScalingGroupName="a-group", MinSize=1)
    [third] = user.members()
    given = {"InstanceId": third, "ShouldDecrementDesiredCapacity": True}
    assert "minSize" in refused("ValidationError", leave, **given)
    assert "not found" in refused("ValidationError", leave, **{**given, "InstanceId": "i-0123"})


def test_scheduled_actions_come_when_it_is_time(aws: SimAWS, user: User) -> None:
    user.make_template()
    user.make_group(1)
    _in_service(user, 1)
    put = user.autoscaling.put_scheduled_update_group_action
    later = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=1)
    given = {"AutoScalingGroupName": "a-group", "ScheduledActionName": "stop"}
    past = later - timedelta(hours=2)
    assert "past" in refused("ValidationError", put, **given, StartTime=past, DesiredCapacity=0)
    put(**given, StartTime=later, MinSize=0, MaxSize=0, DesiredCapacity=0)
    clash = {**given, "ScheduledActionName": "other"}
    refused("ValidationError", put, **clash, StartTime=later, DesiredCapacity=1)

    def planned() -> list[dict[str, Any]]:
        group = {"AutoScalingGroupName": "a-group"}
        found = user.autoscaling.describe_scheduled_actions(**group)
        return list(found["ScheduledUpdateGroupActions"])

    assert [(action["StartTime"], action["DesiredCapacity"]) for action in planned()] == [
        (later, 0)
    ]
    assert "scheduled action a-group/stop in us-west-1" in aws.inventory()
    aws.advance(3500)
    assert len(planned()) == 1
    aws.advance(100)
    until(lambda: not planned(), 10)
    until(lambda: not user.group()["Instances"], 10)
    assert user.group()["MaxSize"] == 0
    assert "scheduled action" in user.activities()[0]["Cause"]


def test_a_template_may_go_before_its_group(user: User) -> None:
    user.make_template()
    user.make_group()
    user.ec2.delete_launch_template(LaunchTemplateName="a-template")
    user.set_desired(1)
    until(lambda: user.activities(), 10)
    assert "does not exist. Launching EC2 instance failed." in user.activities()[0]["StatusMessage"]


# What cannot be launched


def _failure(user: User) -> str:
    """Why launches fail; there may be several by now."""
    until(lambda: user.activities(), 10)
    activity = user.activities()[0]
    assert activity["StatusCode"] == "Failed"
    assert activity["Description"].endswith(activity["StatusMessage"])
    return str(activity["StatusMessage"])


def test_without_capacity_a_group_tries_again_until_there_is_some(aws: SimAWS, user: User) -> None:
    aws.capacity("m5.large", None, False)
    user.make_template(spot=True)
    user.make_group(2)
    assert _failure(user) == (
        "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot "
        "capacity available that matches your request. Launching EC2 instance failed."
    )
    assert user.group()["DesiredCapacity"] == 2
    aws.capacity("m5.large", None, 1)
    _in_service(user, 1)
    aws.capacity(None, None, True)
    _in_service(user, 2)


def test_another_zone_is_tried(aws: SimAWS, user: User) -> None:
    aws.capacity(None, "us-west-1a", False)
    user.make_template()
    user.make_group(2)
    _in_service(user, 2)
    zones = {instance["AvailabilityZone"] for instance in user.group()["Instances"]}
    assert zones == {"us-west-1b"}
    failed = [a for a in user.activities() if a["StatusCode"] == "Failed"]
    assert "sufficient m5.large capacity" in failed[0]["StatusMessage"]
    assert "us-west-1a" in failed[0]["StatusMessage"]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        (Refusal.QUOTA, "current vCPU limit of 0"),
        (Refusal.SPOT_QUOTA, "MaxSpotInstanceCountExceeded"),
        (Refusal.UNSUPPORTED, "instance type (m5.large) is not supported"),
        (Refusal.PRICE, "SpotMaxPriceTooLow"),
        (Refusal.IMAGE, "does not exist"),
        ("Something new.", "Something new. Launching EC2 instance failed."),
    ],
)
def test_launches_are_refused_in_the_words_of_aws(
    aws: SimAWS, user: User, why: Refusal | str, said: str
) -> None:
    aws.refuse(why, instance_type="m5.large")
    user.make_template()
    user.make_group(1)
    assert said in _failure(user)
    aws.allow()
    _in_service(user, 1)


def test_spot_instances_have_a_price(aws: SimAWS, user: User) -> None:
    aws.spot_price("m5.large", 0.05)
    spot = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.01"}}
    user.make_template(InstanceMarketOptions=spot)
    user.make_group(1)
    assert "price of 0.01 is lower than" in _failure(user)
    aws.spot_price("m5.large", 0.005)
    _in_service(user, 1)


def test_a_type_that_a_zone_lacks_is_not_launched_there(aws: SimAWS) -> None:
    user = User(aws.environment(), "us-east-1")
    user.make_template()
    user.make_group(1, VPCZoneIdentifier=user.subnets("e"))
    assert "not supported in your requested Availability Zone (us-east-1e)" in _failure(user)
    user.autoscaling.update_auto_scaling_group(
        AutoScalingGroupName="a-group", VPCZoneIdentifier=user.subnets("e", "f")
    )
    _in_service(user, 1)
    user.close()


def test_user_data_arrives_as_it_was_given(aws: SimAWS, user: User) -> None:
    data = bytes(range(256))
    user.make_template(UserData=base64.b64encode(data).decode())
    user.make_group(1)
    _in_service(user, 1)
    assert aws.instances()[0].user_data == data
