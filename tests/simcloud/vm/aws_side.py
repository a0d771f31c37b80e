"""AWS, for tests with machines."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from tests.contract.clouds.aws_kit import AwsKit
from tests.simcloud.aws import backends
from tests.simcloud.aws_user import User
from tests.simcloud.machines.running import RunningMachine

IMDS = "http://169.254.169.254/latest"
OTHER = "tpi-other"


class AwsSide:
    notice = "notice: spot interruption"
    warning = "rebalance recommendation"
    fetched = "s3:GetObject"
    listed = "s3:ListObjectsV2"
    machines = "*assumed-role*"
    denied = {"code": "AccessDenied", "status": 403}  # noqa: RUF012
    default_type = "m5.2xlarge"
    late = "role of this machine has no keys yet: AssumeRoleUnauthorizedAccess"

    def __init__(self, kit: AwsKit) -> None:
        self.kit = kit
        self.account = kit.account

    def warn(self, instance: Any) -> None:
        self.account.recommend_rebalance(instance.id)

    def wanted(self) -> list[int]:
        return [group.desired for group in self.account._groups.all()]

    def shared_network(self) -> AbstractContextManager[dict[str, Any]]:
        return nullcontext({})

    def make_bucket(self, name: str) -> None:
        backends.s3().create_bucket(name, "eu-north-1")

    def remove_bucket(self, name: str) -> None:
        backends.s3().delete_bucket(name)

    def objects(self, bucket: str) -> Mapping[str, bytes]:
        with self.account._changed:  # machines go on
            return {key: item.value for key, item in backends.s3().buckets[bucket].keys.items()}

    def paths(self, bucket: str) -> list[str]:
        with self.account._changed:
            return [key for key, _ in backends.s3().buckets[bucket].keys.items()]

    def put(self, bucket: str, path: str, content: bytes) -> None:
        backends.s3().put_object(bucket, path, content)

    def remove(self, bucket: str, path: str) -> None:
        backends.s3().delete_object(bucket, path)

    def no_keys(self, seconds: float) -> None:
        self.account.timing.keys_ready = seconds

    def keys_at_last(self, seconds: float) -> None:
        self.account.timing.keys_ready = 0.0

    def secrets(self) -> list[str]:
        own = self.kit.environment()
        return [own["AWS_SECRET_ACCESS_KEY"], own["AWS_ACCESS_KEY_ID"]]

    def in_account(self, name: str) -> Iterator[Any]:
        user = User(self.kit.environment())
        ec2, iam = user.ec2, user.iam
        yield user.s3.get_bucket_tagging(Bucket=name)["TagSet"]
        yield ec2.describe_tags()["Tags"]
        yield iam.get_role(RoleName=name)
        yield iam.get_role_policy(RoleName=name, PolicyName="task")
        yield iam.get_instance_profile(InstanceProfileName=name)
        yield ec2.describe_key_pairs()["KeyPairs"]
        yield ec2.describe_instances()["Reservations"]
        yield user.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        [version] = ec2.describe_launch_template_versions(LaunchTemplateName=name)[
            "LaunchTemplateVersions"
        ]
        yield version
        yield base64.b64decode(version["LaunchTemplateData"]["UserData"])
        user.close()

    def check_rights(self, machine: RunningMachine, name: str) -> None:
        user = User(self.kit.environment())
        theirs = credentials(machine)
        role = User(
            {
                "AWS_ENDPOINT_URL": user.s3.meta.endpoint_url,
                "AWS_ACCESS_KEY_ID": theirs["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": theirs["SecretAccessKey"],
                "AWS_SESSION_TOKEN": theirs["Token"],
            },
            user.region,
        )
        user.make_bucket(OTHER)
        user.s3.put_object(Bucket=OTHER, Key="task.json", Body=b"")
        user.autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=OTHER,
            LaunchTemplate={"LaunchTemplateName": name, "Version": "$Latest"},
            MinSize=0,
            MaxSize=1,
            AvailabilityZones=[f"{user.region}a"],
        )
        _check_store(role, name)
        _check_groups(role, name)
        _check_others(role, name, machine)
        role.close()
        user.autoscaling.delete_auto_scaling_group(AutoScalingGroupName=OTHER, ForceDelete=True)
        user.s3.delete_object(Bucket=OTHER, Key="task.json")
        user.s3.delete_bucket(Bucket=OTHER)
        user.close()


def make(kit: AwsKit) -> AwsSide:
    return AwsSide(kit)


def _check_store(role: User, name: str) -> None:
    s3 = role.s3
    assert s3.get_object(Bucket=name, Key="task.json")["Body"].read()
    refused(s3.get_object, Bucket=name, Key="laptop/seed")
    refused(s3.put_object, Bucket=name, Key="laptop/seed", Body=b"")
    refused(s3.list_buckets)
    refused(s3.list_objects_v2, Bucket=OTHER)
    refused(s3.get_object, Bucket=OTHER, Key="task.json")
    refused(s3.put_object, Bucket=OTHER, Key="task.json", Body=b"")
    refused(s3.delete_bucket, Bucket=name)


def _check_groups(role: User, name: str) -> None:
    scaling = role.autoscaling
    for group in (name, OTHER):
        refused(scaling.set_desired_capacity, AutoScalingGroupName=group, DesiredCapacity=1)
    refused(scaling.delete_auto_scaling_group, AutoScalingGroupName=OTHER)
    refused(scaling.describe_auto_scaling_groups)
    refused(
        scaling.put_scheduled_update_group_action,
        AutoScalingGroupName=OTHER,
        ScheduledActionName="mine",
        DesiredCapacity=1,
    )


def _check_others(role: User, name: str, machine: RunningMachine) -> None:
    refused(role.ec2.run_instances, ImageId="ami-1", MinCount=1, MaxCount=1)
    role.ec2.describe_instances()  # whether another machine is gone; without its user data:
    refused(role.ec2.describe_instance_attribute, InstanceId=machine.spec.id, Attribute="userData")
    refused(role.iam.list_roles)
    refused(role.iam.get_role, RoleName=name)
    refused(role.iam.put_role_policy, RoleName=name, PolicyName="task", PolicyDocument="{}")


def credentials(machine: RunningMachine) -> dict[str, str]:
    token = machine.run(
        *("curl", "-sf", "-X", "PUT", f"{IMDS}/api/token"),
        *("-H", "X-aws-ec2-metadata-token-ttl-seconds: 60"),
    ).stdout
    base = f"{IMDS}/meta-data/iam/security-credentials/"
    header = ("-H", f"X-aws-ec2-metadata-token: {token}")
    role = machine.run("curl", "-sf", *header, base).stdout
    found: dict[str, str] = json.loads(machine.run("curl", "-sf", *header, base + role).stdout)
    return found


def refused(call: Any, **arguments: Any) -> None:
    with pytest.raises(Exception, match=r"AccessDenied|UnauthorizedOperation"):
        call(**arguments)
