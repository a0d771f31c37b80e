"""How the store of a task is reached: by whom, and with which credentials."""

from __future__ import annotations

from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sojourn.clouds.az.watched import TRIES
from sojourn.storage.store import StoreAddress

if TYPE_CHECKING:
    from sojourn.clouds.az.account import Account
    from sojourn.clouds.az.locations import Location

__all__ = ["address", "for_machines", "https_url"]


def address(account: Account, location: Location) -> StoreAddress:
    """The store as seen from the laptop: with the user's login, or a key of the account."""
    options: dict[str, Any] = {
        "account_name": location.account,
        "retry_config": {"max_retries": TRIES},
    }
    if location.key:
        options["account_key"] = location.key
    else:
        options["credential_provider"] = partial(_token, account)
    return StoreAddress(_url(location), options)


def for_machines(location: Location, identity: str) -> StoreAddress:
    """The store as seen from a machine, which has an identity of its own. No secrets."""
    options = {
        "account_name": location.account,
        "credential_type": "managed_identity",
        "msi_resource_id": identity,
    }
    return StoreAddress(_url(location), options)


def https_url(location: Location, path: str) -> str:
    """Of a path in the store, for a machine that has nothing but Python yet."""
    inside = f"{location.folder}/{path}" if location.folder else path
    host = f"https://{location.account}.blob.core.windows.net"
    return f"{host}/{location.container}/{quote(inside)}"


def _url(location: Location) -> str:
    return f"az://{location.container}/{location.folder}".rstrip("/")


def _token(account: Account) -> dict[str, Any]:
    """What obstore calls when it needs a token. obstore's own needs Python 3.11."""
    token, end = account.storage_token()
    return {"token": token, "expires_at": datetime.fromtimestamp(end, timezone.utc)}
