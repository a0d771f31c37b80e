"""The instance profile that a user gives as `permission_set`."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["arn_of", "name_of", "notes_on"]

_MUST_ALLOW = (
    "permission_set must allow what machines do: read and write their bucket, or they do not "
    "start; autoscaling:TerminateInstanceInAutoScalingGroup, or they are replaced until "
    "you delete the task. docs/aws.md has the policy."
)
# The second colon may be missing: pages of Terraform Provider Iterative write it so.
_FORM = re.compile(r"arn:aws:iam::?(?P<rest>\d*:instance-profile/.+)")


def arn_of(given: str) -> str:
    """The ARN as AWS writes it; refuses what is none."""
    found = _FORM.fullmatch(given)
    if not found:
        raise InvalidInput(
            "permission_set",
            "must be the ARN of an instance profile, such as "
            f"arn:aws:iam::123456789012:instance-profile/name, got {given!r}",
        )
    return f"arn:aws:iam::{found['rest']}"


def name_of(given: str) -> str:
    """Its name, without the path."""
    return given.rpartition("/")[2]


def notes_on(given: str) -> list[str]:
    """What the user should know of it."""
    arn = arn_of(given)
    notes = [f"Using {arn} as permission_set: {given} is missing a colon."] if arn != given else []
    return [*notes, _MUST_ALLOW]
