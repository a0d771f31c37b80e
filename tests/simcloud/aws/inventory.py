"""Everything that is in the account and was not there when it was new, to see what was left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.simcloud.aws import backends, placement
from tests.simcloud.aws.groups import Groups


def found(groups: Groups, users: set[str]) -> list[str]:
    """A line for each resource of any kind and region; `users` are those of the test."""
    return sorted([*_of_s3(), *_of_iam(users), *_of_ec2(), *_of_autoscaling(groups)])


def _of_s3() -> Iterator[str]:
    for bucket in backends.s3().buckets.values():
        yield f"bucket {bucket.name}"
        for name, _ in bucket.keys.items():
            for version in bucket.keys.getlist(name):
                kind = "delete marker" if type(version).__name__ == "FakeDeleteMarker" else "object"
                yield f"{kind} {bucket.name}/{name}"
        for upload in bucket.multiparts.values():
            yield f"upload {bucket.name}/{upload.key_name}"


def _of_iam(users: set[str]) -> Iterator[str]:
    iam = backends.iam()
    for role in iam.roles.values():
        yield f"role {role.name}"
        for name in role.policies:
            yield f"policy {role.name}/{name}"
    for profile in iam.instance_profiles.values():
        yield f"profile {profile.name}"
    for name in iam.users:
        if name not in users:
            yield f"user {name}"


def _of_ec2() -> Iterator[str]:
    for region, backend in backends.ec2_regions():
        for line in _of_region(backend):
            yield f"{line} in {region}"


def _of_region(backend: Any) -> Iterator[str]:
    for groups in backend.groups.values():
        for group in groups.values():
            if group.name != "default":
                yield f"security group {group.name}"
    for name in placement.groups_of(backend):
        yield f"placement group {name}"
    for name in backend.key_pairs:
        yield f"key pair {name}"
    for template in backend.launch_templates.values():
        yield f"launch template {template.name}"
    for instance in backend.all_instances():
        if instance.state != "terminated":
            yield f"instance {instance.id}"
            if instance.lifecycle == "spot":
                yield f"spot request {instance.spot_instance_request_id}"
    for volume in backend.volumes.values():
        yield f"volume {volume.id}"
    for interface in backend.enis.values():
        yield f"network interface {interface.id}"
    for image in backend.amis.values():
        if image.owner_id == backends.ACCOUNT:
            yield f"image {image.name}"
    for snapshot in backend.snapshots.values():
        if snapshot.owner_id == backends.ACCOUNT:
            yield f"snapshot {snapshot.id}"
    for request in backend.spot_instance_requests.values():
        yield f"spot request {request.id}"


def _of_autoscaling(groups: Groups) -> Iterator[str]:
    for group in groups.all():
        yield f"group {group.name} in {group.region}"
        for name in group.scheduled:
            yield f"scheduled action {group.name}/{name} in {group.region}"
