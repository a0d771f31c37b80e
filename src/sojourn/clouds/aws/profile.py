"""The instance profile that a user gives as `permission_set`."""

from __future__ import annotations

import re

from sojourn.core.errors import InvalidInput

__all__ = ["arn_of", "name_of", "note_on"]

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


def note_on(given: str) -> str:
    """What the user should know of how it is written; empty if it is right."""
    arn = arn_of(given)
    return "" if arn == given else f"Using {arn} as permission_set: {given} is missing a colon."
