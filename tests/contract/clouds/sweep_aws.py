"""Remove what tests left in a real AWS account: only what has the tag `sojourn:test`.

python -m tests.contract.clouds.sweep_aws [--yes] [--mark MARK] [REGION...]

Without --yes it only shows what there is. It does not use the product, which may be what is broken.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tests.contract.clouds import sweeping
from tests.contract.clouds.aws_marks import MARK
from tests.contract.clouds.sweeping import Found, Sweeper

_PATH = "/sojourn/"
_ALIVE = ["pending", "running", "shutting-down", "stopping", "stopped"]


class Sweep(Sweeper):
    """What is in one region, and what is in none."""

    refusal = ClientError

    def __init__(self, region: str, mark: str = "") -> None:
        super().__init__(mark)
        session = boto3.Session(region_name=region)
        self._region = region
        self._autoscaling = session.client("autoscaling")
        self._ec2 = session.client("ec2")
        self._iam = session.client("iam")
        self._s3 = session.client("s3")

    def found(self) -> Iterator[Found]:
        yield from self._groups()
        yield from self._machines()
        yield from self._of_ec2()
        yield from self._roles()
        yield from self._buckets()

    def _filters(self) -> list[dict[str, Any]]:
        if self._mark:
            return [{"Name": f"tag:{MARK}", "Values": [self._mark]}]
        return [{"Name": "tag-key", "Values": [MARK]}]

    def _ours(self, tags: list[dict[str, str]]) -> bool:
        return any(self.is_ours(tag["Value"]) for tag in tags if tag["Key"] == MARK)

    def _groups(self) -> Iterator[Found]:
        pages = self._autoscaling.get_paginator("describe_auto_scaling_groups")
        for page in pages.paginate(Filters=self._filters()):
            for group in page["AutoScalingGroups"]:
                name = group["AutoScalingGroupName"]

                def remove(name: str = name) -> None:
                    self._autoscaling.delete_auto_scaling_group(
                        AutoScalingGroupName=name, ForceDelete=True
                    )

                yield Found(f"group {name}", remove)

    def _machines(self) -> Iterator[Found]:
        alive = [*self._filters(), {"Name": "instance-state-name", "Values": _ALIVE}]
        for page in self._ec2.get_paginator("describe_instances").paginate(Filters=alive):
            for reservation in page["Reservations"]:
                for item in reservation["Instances"]:
                    machine = item["InstanceId"]

                    def remove(machine: str = machine) -> None:
                        self._ec2.terminate_instances(InstanceIds=[machine])

                    yield Found(f"machine {machine}", remove)

    def _of_ec2(self) -> Iterator[Found]:
        for kind, operation, answer, key, removal in (
            ("launch template", "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId",
             self._ec2.delete_launch_template),
            ("key pair", "describe_key_pairs", "KeyPairs", "KeyName", self._ec2.delete_key_pair),
            ("security group", "describe_security_groups", "SecurityGroups", "GroupId",
             self._ec2.delete_security_group),
            ("volume", "describe_volumes", "Volumes", "VolumeId", self._ec2.delete_volume),
            # An image before its snapshots: they are in use as long as it is there.
            ("image", "describe_images", "Images", "ImageId", self._ec2.deregister_image),
            ("snapshot", "describe_snapshots", "Snapshots", "SnapshotId",
             self._ec2.delete_snapshot),
        ):  # fmt: skip
            for item in getattr(self._ec2, operation)(Filters=self._filters())[answer]:

                def remove(key: str = key, item: Any = item, removal: Any = removal) -> None:
                    removal(**{key: item[key]})

                yield Found(f"{kind} {item[key]}", remove)

    def _roles(self) -> Iterator[Found]:
        for page in self._iam.get_paginator("list_instance_profiles").paginate(PathPrefix=_PATH):
            for profile in page["InstanceProfiles"]:
                name = profile["InstanceProfileName"]
                # A list does not tell the tags.
                whole = self._iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]
                if self._ours(whole.get("Tags", [])):

                    def remove_profile(name: str = name, profile: Any = profile) -> None:
                        for role in profile["Roles"]:
                            self._iam.remove_role_from_instance_profile(
                                InstanceProfileName=name, RoleName=role["RoleName"]
                            )
                        self._iam.delete_instance_profile(InstanceProfileName=name)

                    yield Found(f"profile {name}", remove_profile)
        for page in self._iam.get_paginator("list_roles").paginate(PathPrefix=_PATH):
            for role in page["Roles"]:
                name = role["RoleName"]
                if self._ours(self._iam.list_role_tags(RoleName=name)["Tags"]):

                    def remove_role(name: str = name) -> None:
                        for policy in self._iam.list_role_policies(RoleName=name)["PolicyNames"]:
                            self._iam.delete_role_policy(RoleName=name, PolicyName=policy)
                        self._iam.delete_role(RoleName=name)

                    yield Found(f"role {name}", remove_role)

    def _buckets(self) -> Iterator[Found]:
        pages = self._s3.get_paginator("list_buckets")
        for page in pages.paginate(Prefix="tpi-", PaginationConfig={"PageSize": 1000}):
            for bucket in page.get("Buckets", ()):
                name = bucket["Name"]
                if bucket["BucketRegion"] == self._region and self._ours(self._tags(name)):

                    def remove(name: str = name) -> None:
                        self._empty(name)
                        self._s3.delete_bucket(Bucket=name)

                    yield Found(f"bucket {name}", remove)

    def _tags(self, bucket: str) -> list[dict[str, str]]:
        with suppress(ClientError):  # it has none, or has gone
            return list(self._s3.get_bucket_tagging(Bucket=bucket)["TagSet"])
        return []

    def _empty(self, bucket: str) -> None:
        for page in self._s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
            found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            objects = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found]
            if objects:
                self._s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})


def main(arguments: list[str]) -> int:
    return sweeping.run(__doc__, arguments, Sweep, ["us-west-1"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
