"""What a machine may do: reach its own store, mark its own group and leave it. Nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sojourn.clouds.aws.keys import SEED
from sojourn.clouds.aws.onboard.marks import RANK

if TYPE_CHECKING:
    from sojourn.clouds.aws.locate import Place
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


def machine_policy(id: TaskId, place: Place) -> dict[str, Any]:
    """What the role of a task allows."""
    bucket = f"arn:aws:s3:::{place.bucket}"
    inside = f"{place.folder}/" if place.folder else ""
    group = f"arn:aws:autoscaling:{place.region}:*:autoScalingGroup:*:autoScalingGroupName/{id}"
    listing: dict[str, Any] = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": bucket}
    if inside:
        listing["Condition"] = {"StringLike": {"s3:prefix": f"{inside}*"}}
    return {
        "Version": "2012-10-17",
        "Statement": [
            listing,
            {
                "Effect": "Allow",
                "Action": [
                    "s3:AbortMultipartUpload",
                    "s3:DeleteObject",
                    "s3:GetObject",
                    "s3:PutObject",
                ],
                "Resource": f"{bucket}/{inside}*",
            },
            {"Effect": "Deny", "Action": "s3:*", "Resource": f"{bucket}/{inside}{SEED}"},
            {
                "Effect": "Allow",
                "Action": [
                    "autoscaling:CompleteLifecycleAction",
                    "autoscaling:PutScheduledUpdateGroupAction",
                    "autoscaling:RecordLifecycleActionHeartbeat",
                    "autoscaling:TerminateInstanceInAutoScalingGroup",
                ],
                "Resource": group,
            },
            {
                "Effect": "Allow",
                "Action": "autoscaling:CreateOrUpdateTags",
                "Resource": group,
                "Condition": {"ForAllValues:StringLike": {"aws:TagKeys": f"{RANK}*"}},
            },
        ],
    }
