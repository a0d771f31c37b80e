"""Microsoft Azure: scale sets of virtual machines, with a storage account beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.about import About, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["ABOUT", "examine", "make_cloud"]

ABOUT = About(
    title="Azure",
    aliases=("azure",),
    extra="az",
    packages=("azure-identity", "cryptography", "httpx"),
    modules=("azure.identity", "cryptography", "httpx"),
    variables=(
        "AZURE_CLIENT_ID",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_SUBSCRIPTION_ID",
    ),
    files=("~/.azure/azureProfile.json",),
    options=OPTIONS,
    settings=(
        Setting("subscription", "ID of the subscription"),
        Setting("region", "region of tasks that name none"),
    ),
)


def make_cloud(name: str, settings: Mapping[str, str]) -> Cloud:
    """The cloud as settings, or this computer's configuration, reach it; asks nobody anything."""
    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.cloud import AzureCloud

    return AzureCloud(Account(settings.get("subscription", "")), name)


def examine(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What there is to tell of the subscription; asks it, with little patience."""
    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.checkup import look

    yield from look(Account(settings.get("subscription", ""), tries=2))
