"""Amazon Web Services: auto-scaling groups of EC2 machines, with a bucket beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.core.interfaces import Cloud

__all__ = ["make_cloud"]


def make_cloud() -> Cloud:
    """The cloud as this computer's configuration reaches it; asks nobody anything yet."""
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.cloud import AwsCloud

    return AwsCloud(Account())
