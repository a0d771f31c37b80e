"""The instance profile that a user gives as `permission_set`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.clouds.vm.identity import lacking, unchecked
from sojourn.core.errors import AuthError, InvalidInput, NotFound, SojournError
from sojourn.storage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.locations import Location
    from sojourn.core.ids import TaskId

__all__ = ["arn_of", "check_rights", "note_on", "role_in"]

_PAGE = "docs/aws.md"
_IAM = "us-east-1"  # where it is asked
_LEAVING = (
    "autoscaling:CompleteLifecycleAction",
    "autoscaling:RecordLifecycleActionHeartbeat",
    "autoscaling:TerminateInstanceInAutoScalingGroup",
)
_WRITING = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
_LISTING = ("s3:ListBucket",)
_NEEDED = (*_LEAVING, *_LISTING, *_WRITING)
_ANY_UUID = "00000000-0000-0000-0000-000000000000"  # a group gets its own when it is made
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


def note_on(given: str) -> list[str]:
    """What the user should know of how it is written."""
    arn = arn_of(given)
    return [f"Using {arn} as permission_set: {given} is missing a colon."] if arn != given else []


def role_in(account: Account, given: str) -> str:
    """The ARN of the role in a profile; refuses one that is not there. Empty: we may not know."""
    name = name_of(given)
    try:
        found = account.call(
            "permission_set", "iam", _IAM, "get_instance_profile", InstanceProfileName=name
        )
    except NotFound as error:
        raise InvalidInput("permission_set", f"instance profile {name} not found") from error
    except AuthError:
        return ""
    roles = found["InstanceProfile"]["Roles"]
    if not roles:
        raise InvalidInput("permission_set", f"instance profile {name} has no role")
    return str(roles[0]["Arn"])


def check_rights(account: Account, role: str, location: Location, id: TaskId) -> list[str]:
    """Refuse a role without the rights that machines need, if AWS tells; else warn."""
    if not role:
        return [unchecked("permission_set", "you lack iam:GetInstanceProfile", _NEEDED, _PAGE)]
    try:
        missing = sorted(_missing(account, role, location, id))
    except AuthError:
        return [unchecked(role, "you lack iam:SimulatePrincipalPolicy", _NEEDED, _PAGE)]
    except SojournError as error:
        return [unchecked(role, error.message, _NEEDED, _PAGE)]
    if missing:
        raise lacking(role, missing, f"{_PAGE}#what-machines-may-do")
    return []


def _missing(account: Account, role: str, location: Location, id: TaskId) -> Iterator[str]:
    """The task's name may be chosen later; then a name that could be its own is asked about."""
    number = role.split(":")[4]
    group = (
        f"arn:aws:autoscaling:{location.region}:{number}:autoScalingGroup:{_ANY_UUID}"
        f":autoScalingGroupName/{id}"
    )
    asked: list[tuple[tuple[str, ...], str]] = [(_LEAVING, group)]
    if not location.contained:  # the policy of a bucket of the user's may allow it as well
        bucket = f"arn:aws:s3:::{location.bucket}"
        asked += [(_LISTING, bucket), (_WRITING, f"{bucket}/{layout.MACHINES_WRITE[0]}/x")]
    for actions, resource in asked:
        answer = account.call(
            "permission_set",
            "iam",
            _IAM,
            "simulate_principal_policy",
            PolicySourceArn=role,
            ActionNames=[*actions],
            ResourceArns=[resource],
        )
        for result in answer["EvaluationResults"]:
            # A condition on something that only a real request has may hold there.
            if result["EvalDecision"] != "allowed" and not result.get("MissingContextValues"):
                yield str(result["EvalActionName"])
