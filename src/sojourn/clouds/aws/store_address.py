"""The store of a task: a bucket of its own, or a folder in one of the user's."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError
from sojourn.storage.store import StoreAddress

if TYPE_CHECKING:
    from sojourn.clouds.aws.account import Account
    from sojourn.clouds.aws.locations import Location

__all__ = ["address", "options_for_machines", "url_of"]

_ASK_AGAIN = timedelta(minutes=15)  # obstore asks boto3, which renews what is about to end


def url_of(location: Location) -> str:
    """As obstore takes it."""
    return f"s3://{location.bucket}/{location.folder}".rstrip("/")


def address(account: Account, location: Location) -> StoreAddress:
    """The store as seen from the laptop, with the user's credentials."""
    options = options_for_machines(account, location)
    return StoreAddress(
        url_of(location), {**options, "credential_provider": partial(_credentials, account)}
    )


def options_for_machines(account: Account, location: Location) -> dict[str, Any]:
    """The store as seen from a machine, which has credentials of its own. No secrets."""
    client = account.client("s3", location.bucket_region)
    endpoint = str(client.meta.endpoint_url)
    # The bucket is in the path: with a dot in the name of a host, no certificate would match.
    options: dict[str, Any] = {
        "region": location.bucket_region,
        "virtual_hosted_style_request": False,
    }
    if not endpoint.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        options["endpoint"] = endpoint
        if endpoint.startswith("http://"):
            options["client_options"] = {"allow_http": True}
    return options


def _credentials(account: Account) -> dict[str, Any]:
    """What obstore calls when it needs keys. obstore's own needs Python 3.11."""
    found = account.session.get_credentials()
    if found is None:
        raise AuthError("No AWS credentials found", hint="Run `aws sso login`.")
    keys = found.get_frozen_credentials()
    return {
        "access_key_id": keys.access_key,
        "secret_access_key": keys.secret_key,
        "token": keys.token,
        "expires_at": datetime.now(timezone.utc) + _ASK_AGAIN,
    }
