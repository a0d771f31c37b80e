"""Amazon Web Services: auto-scaling groups of EC2 machines, with a bucket beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.about import About, MachineArgument, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["ABOUT", "examine", "make_cloud"]

_SECURITY_GROUP = (
    "security_group",
    "security group that machines have beside their own, by ID or name; port 22 is then open only "
    "to whom it lets in, and to ssh_from",
)

ABOUT = About(
    title="AWS",
    extra="aws",
    packages=("boto3", "cryptography"),
    modules=("boto3", "cryptography"),
    variables=(
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ),
    files=("~/.aws/credentials", "~/.aws/config"),
    options=(*OPTIONS, _SECURITY_GROUP),
    settings=(
        Setting("profile", "profile in ~/.aws/config or ~/.aws/credentials"),
        Setting("region", "region of tasks that name none"),
    ),
    machine_arguments=(
        MachineArgument(
            "aws_security_group",
            "options.security_group",
            "Security group that the machine has beside its own, by ID or name.",
        ),
        MachineArgument("aws_subnet_id", "options.network", "Subnet of the machine."),
    ),
)


def make_cloud(name: str, settings: Mapping[str, str]) -> Cloud:
    """The cloud as settings, or this computer's configuration, reach it; asks nobody anything."""
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.cloud import AwsCloud

    return AwsCloud(Account(settings.get("profile", "")), name)


def examine(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What there is to tell of the account; asks it, with little patience."""
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.checkup import look

    yield from look(Account(settings.get("profile", ""), tries=2))
