"""What a machine may do: read its own store, write its part of it, mark its own group and leave it.

It cannot change how many machines its group wants, or when AWS ends it: the right to schedule
changes of a group would let a script set its limits.

Beside that it can see which machines there are, so that it knows when one is lost. Nothing else.
What a laptop acts on, such as the task's description, a machine can only read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.vm.on_machine.marks import RANK
from sojourn.clouds.vm.paths import LISTED, READ, SEED
from sojourn.storage.layout import MACHINES_WRITE

if TYPE_CHECKING:
    from sojourn.clouds.aws.locations import Location
    from sojourn.core.ids import TaskId

__all__ = ["FOR_MACHINES", "machine_policy"]

# Who may take the role: machines.
FOR_MACHINES: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


def machine_policy(id: TaskId, location: Location) -> dict[str, Any]:
    """What the role of a task allows."""
    bucket = f"arn:aws:s3:::{location.bucket}"
    inside = f"{location.folder}/" if location.folder else ""
    group = f"arn:aws:autoscaling:{location.region}:*:autoScalingGroup:*:autoScalingGroupName/{id}"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
    readable = [f"{bucket}/*"]
    if location.contained:  # other tasks may have folders beside it, or below
        seen = [f"{inside}{name}*" for name in LISTED]
        listing["Condition"] = {"StringLike": {"s3:prefix": seen}}
        names = [f"{name}*" if name.endswith("/") else name for name in (*READ, *LISTED)]
        readable = [f"{bucket}/{inside}{name}" for name in dict.fromkeys(names)]
    return {
        "Version": "2012-10-17",
        "Statement": [
            listing,
            {
                "Effect": "Allow",
                "Action": "s3:GetObject",
                "Resource": readable,
            },
            {
                "Effect": "Allow",
                "Action": ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:PutObject"],
                "Resource": [f"{bucket}/{inside}{name}/*" for name in MACHINES_WRITE],
            },
            {"Effect": "Deny", "Action": "s3:*", "Resource": f"{bucket}/{inside}{SEED}"},
            {
                "Effect": "Allow",
                "Action": [
                    "autoscaling:CompleteLifecycleAction",
                    "autoscaling:RecordLifecycleActionHeartbeat",
                    "autoscaling:TerminateInstanceInAutoScalingGroup",
                ],
                "Resource": group,
            },
            # Which machines are gone. It cannot be limited to those of the group.
            {"Effect": "Allow", "Action": "ec2:DescribeInstances", "Resource": "*"},
            {
                "Effect": "Allow",
                "Action": "autoscaling:CreateOrUpdateTags",
                "Resource": group,
                "Condition": {"ForAllValues:StringLike": {"aws:TagKeys": f"{RANK}*"}},
            },
        ],
    }
