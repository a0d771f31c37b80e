"""A user of a simulated AWS account: the SDK's clients, and all that a group of machines needs."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sojourn.core.ids import TaskId
from tests.support.waiting import until

REGION = "us-west-1"
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "ec2.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
)
UBUNTU = "ubuntu/images/hvm-ssd*/ubuntu-*-22.04-amd64-server-*"


def allow(*actions: str, resource: str | list[str] = "*", **more: Any) -> dict[str, Any]:
    """A policy of one statement."""
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource, **more}
    return {"Version": "2012-10-17", "Statement": [statement]}


@functools.cache
def _session() -> Any:
    """Reading the models of services takes a while, and the session keeps them."""
    return boto3.Session()


class User:
    """Clients with the credentials of these variables, which do not retry."""

    def __init__(self, environment: Mapping[str, str], region: str = REGION) -> None:
        self._environment = environment
        self.region = region
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = _session().client(
                service,
                region_name=self.region,
                endpoint_url=self._environment["AWS_ENDPOINT_URL"],
                aws_access_key_id=self._environment["AWS_ACCESS_KEY_ID"],
                aws_secret_access_key=self._environment["AWS_SECRET_ACCESS_KEY"],
                aws_session_token=self._environment.get("AWS_SESSION_TOKEN"),
                config=Config(
                    retries={"total_max_attempts": 1},
                    signature_version="s3v4" if service == "s3" else "v4",
                ),
            )
        return self._clients[service]

    @property
    def autoscaling(self) -> Any:
        return self.client("autoscaling")

    @property
    def ec2(self) -> Any:
        return self.client("ec2")

    @property
    def iam(self) -> Any:
        return self.client("iam")

    @property
    def s3(self) -> Any:
        return self.client("s3")

    @property
    def sts(self) -> Any:
        return self.client("sts")

    def in_region(self, region: str) -> User:
        """The same user, elsewhere."""
        return User(self._environment, region)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    # What a group of machines needs

    def image(self, name: str = UBUNTU) -> str:
        images = self.ec2.describe_images(
            Owners=["099720109477"], Filters=[{"Name": "name", "Values": [name]}]
        )["Images"]
        return str(max(images, key=lambda image: image["CreationDate"])["ImageId"])

    def subnets(self, *zones: str) -> str:
        found = self.ec2.describe_subnets()["Subnets"]
        wanted = [s for s in found if not zones or s["AvailabilityZone"][-1] in zones]
        return ",".join(str(subnet["SubnetId"]) for subnet in wanted)

    def make_bucket(self, name: str = "a-bucket") -> str:
        where = {"LocationConstraint": self.region}
        self.s3.create_bucket(Bucket=name, CreateBucketConfiguration=where)
        return name

    def make_profile(self, policy: Mapping[str, Any] | None = None) -> str:
        self.iam.create_role(RoleName="a-role", AssumeRolePolicyDocument=TRUST)
        document = json.dumps(policy or allow("s3:*", "autoscaling:*", "ec2:Describe*"))
        self.iam.put_role_policy(RoleName="a-role", PolicyName="rights", PolicyDocument=document)
        self.iam.create_instance_profile(InstanceProfileName="a-profile")
        self.iam.add_role_to_instance_profile(InstanceProfileName="a-profile", RoleName="a-role")
        return "a-profile"

    def make_role(self, name: str) -> None:
        """As tasks have them."""
        self.iam.create_role(RoleName=name, Path="/sojourn/", AssumeRolePolicyDocument=TRUST)

    def make_template(self, user_data: bytes = b"", *, spot: bool = False, **more: Any) -> str:
        data: dict[str, Any] = {
            "ImageId": self.image(),
            "InstanceType": "m5.large",
            "InstanceInitiatedShutdownBehavior": "terminate",
            "MetadataOptions": {"HttpTokens": "required"},
            **({"UserData": base64.b64encode(user_data).decode()} if user_data else {}),
            **({"InstanceMarketOptions": {"MarketType": "spot"}} if spot else {}),
            **more,
        }
        self.ec2.create_launch_template(LaunchTemplateName="a-template", LaunchTemplateData=data)
        return "a-template"

    def make_group(self, desired: int = 0, *, most: int = 5, **more: Any) -> None:
        given = {
            "AutoScalingGroupName": "a-group",
            "MinSize": 0,
            "MaxSize": most,
            "DesiredCapacity": desired,
            "LaunchTemplate": {"LaunchTemplateName": "a-template"},
            "VPCZoneIdentifier": self.subnets(),
            **more,
        }
        self.autoscaling.create_auto_scaling_group(**given)

    def make_task(
        self, name: str, tags: Mapping[str, str], *, desired: int = 0, most: int = 1
    ) -> TaskId:
        """A task as it is seen from outside: a bucket and a group."""
        task = TaskId.deterministic(name)
        self.make_bucket(str(task))
        marks = [{"Key": k, "Value": v, "PropagateAtLaunch": False} for k, v in tags.items()]
        self.make_group(desired, most=most, AutoScalingGroupName=str(task), Tags=marks)
        return task

    def set_desired(self, desired: int) -> None:
        self.autoscaling.set_desired_capacity(
            AutoScalingGroupName="a-group", DesiredCapacity=desired
        )

    def group(self) -> dict[str, Any]:
        """What is told of the group; nothing if there is none."""
        found = self.autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        return dict(found[0]) if found else {}

    def members(self, state: str = "InService") -> list[str]:
        instances = self.group().get("Instances", [])
        return [each["InstanceId"] for each in instances if each["LifecycleState"] == state]

    def in_service(self, count: int) -> list[str]:
        """The members, once there are this many of them in service."""
        until(lambda: len(self.members()) == count, 10)
        return self.members()

    def activities(self) -> list[dict[str, Any]]:
        found = self.autoscaling.describe_scaling_activities(AutoScalingGroupName="a-group")
        return list(found["Activities"])

    def delete_group(self) -> None:
        """Delete the group with its instances, and wait until it has gone."""
        self.autoscaling.delete_auto_scaling_group(AutoScalingGroupName="a-group", ForceDelete=True)
        until(lambda: not self.group())

    def remove_profile(self) -> None:
        names = {"InstanceProfileName": "a-profile"}
        self.iam.remove_role_from_instance_profile(**names, RoleName="a-role")
        self.iam.delete_instance_profile(**names)
        self.iam.delete_role_policy(RoleName="a-role", PolicyName="rights")
        self.iam.delete_role(RoleName="a-role")

    def remove_bucket(self, name: str = "a-bucket") -> None:
        for found in self.s3.list_objects_v2(Bucket=name).get("Contents", []):
            self.s3.delete_object(Bucket=name, Key=found["Key"])
        self.s3.delete_bucket(Bucket=name)


def refused(code: str, call: Callable[..., Any], **parameters: Any) -> str:
    """Make a call that has to be refused with this code; returns the message."""
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    error = caught.value.response["Error"]
    assert error["Code"] == code, error
    return str(error.get("Message", ""))
