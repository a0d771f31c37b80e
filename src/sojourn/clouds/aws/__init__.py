"""Amazon Web Services: auto-scaling groups of EC2 machines, with a bucket beside them."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["examine", "is_set_up", "make_cloud"]

_SIGNS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")


def is_set_up() -> bool:
    """Whether somebody uses AWS here. Cheap: boto3 is not loaded, and nobody is asked."""
    configured = any(os.environ.get(sign) for sign in _SIGNS) or (Path.home() / ".aws").is_dir()
    return configured and find_spec("boto3") is not None


def make_cloud() -> Cloud:
    """The cloud as this computer's configuration reaches it; asks nobody anything yet."""
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.cloud import AwsCloud

    return AwsCloud(Account())


def examine() -> Iterator[Finding]:
    """What there is to tell of the account; asks it, with little patience."""
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.checkup import look

    yield from look(Account(tries=2))
