"""Google Cloud: managed groups of Compute Engine machines, with a bucket beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sojourn.clouds.vm import OPTIONS
from sojourn.core.about import About, Setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sojourn.clouds.gcp.account import Account
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
    settings=(
        Setting("project", "ID of the project"),
        Setting("credentials", "key file, or another file with credentials", path=True),
        Setting("region", "zone of tasks that name none"),
    ),
)


def make_cloud(name: str, settings: Mapping[str, str]) -> Cloud:
    """The cloud as settings, or this computer's configuration, reach it; asks nobody anything."""
    from sojourn.clouds.gcp.cloud import GoogleCloud

    return GoogleCloud(_account(settings), name)


def examine(settings: Mapping[str, str]) -> Iterator[Finding]:
    """What there is to tell of the project; asks it, with little patience."""
    from sojourn.clouds.gcp.checkup import look

    yield from look(_account(settings, tries=2))


def _account(settings: Mapping[str, str], tries: int = 0) -> Account:
    from sojourn.clouds.gcp.account import Account

    project, credentials = settings.get("project", ""), settings.get("credentials", "")
    return Account(project=project, credentials=credentials, tries=tries)
