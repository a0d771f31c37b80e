"""Google Cloud: managed groups of Compute Engine machines, with a bucket beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.about import About

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.core.finding import Finding
    from sojourn.core.interfaces import Cloud

__all__ = ["ABOUT", "examine", "make_cloud"]

ABOUT = About(
    title="Google Cloud",
    extra="gcp",
    packages=("google-auth", "httpx", "cryptography"),
    modules=("google.auth", "httpx", "cryptography"),
    variables=("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS_DATA"),
    files=("~/.config/gcloud/application_default_credentials.json",),
    options=OPTIONS,
)


def make_cloud() -> Cloud:
    """The cloud as this computer's configuration reaches it; asks nobody anything yet."""
    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.gcp.cloud import GoogleCloud

    return GoogleCloud(Account())


def examine() -> Iterator[Finding]:
    """What there is to tell of the project; asks it, with little patience."""
    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.gcp.checkup import look

    yield from look(Account(tries=2))
