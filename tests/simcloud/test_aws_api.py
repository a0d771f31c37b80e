"""A simulated AWS account: who may call what, and calls that fail because the test says so."""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ConnectionClosedError

from tests.simcloud.aws.account import SimAWS
from tests.simcloud.aws_user import User, allow, refused
from tests.simcloud.common import gate
from tests.support.waiting import patience

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
        said = refused("ValidationError", other.make_group)
        told = user.sts.decode_authorization_message(EncodedMessage=said.rpartition(" ")[2])
        assert missing in told["DecodedMessage"]
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
    [instance] = user.in_service(1)

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
    aws.fail("s3:DeleteObject", after=True, cut=True)
    with pytest.raises(ConnectionClosedError):
        user.s3.delete_object(Bucket=bucket, Key="a")
    assert user.s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
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


def test_calls_can_take_long_without_holding_up_others(
    aws: SimAWS, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws.delay(0.3)
    start = time.monotonic()
    user.ec2.describe_vpcs()
    assert time.monotonic() - start >= 0.3
    at_once = threading.Barrier(4)
    monkeypatch.setattr(gate, "sleep", lambda _: at_once.wait(patience(30)))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: user.ec2.describe_vpcs(), range(4)))
