"""A security group of the user's own, which machines have beside that of their task."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.core.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sojourn.clouds.aws.account import Account
    from sojourn.core.task import Task

__all__ = ["OPTION", "GivenGroup", "find_group", "given_group"]

OPTION = "security_group"
_FIELD = f"options.{OPTION}"
_ID = re.compile(r"sg-[0-9a-f]+")


@dataclass(frozen=True)
class GivenGroup:
    """One that exists, and the network that it is in."""

    id: str
    vpc: str


def given_group(task: Task) -> str:
    """What the user wrote; empty: nothing."""
    return task.options.get(OPTION, "").strip()


def find_group(account: Account, region: str, text: str) -> GivenGroup:
    """By its id or name; refuses what is not there, and names that mean several."""
    named = "group-id" if _ID.fullmatch(text) else "group-name"
    filters = [{"Name": named, "Values": [text]}]
    try:
        found = account.call(
            "security group", "ec2", region, "describe_security_groups", Filters=filters
        )["SecurityGroups"]
    except NotFound:
        found = []
    if not found:
        raise InvalidInput(_FIELD, f"security group {text!r} not found in {region}")
    if len(found) > 1:
        ids = ", ".join(sorted(str(group["GroupId"]) for group in found))
        raise InvalidInput(_FIELD, f"{text!r} means several security groups: {ids}; use an ID")
    return GivenGroup(str(found[0]["GroupId"]), str(found[0]["VpcId"]))
