"""Where obstore finds the store of a task."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from sojourn.storage.store import StoreAddress

if TYPE_CHECKING:
    from sojourn.clouds.gcp.account import Account
    from sojourn.clouds.gcp.locations import Location

__all__ = ["address", "for_machines", "url_in"]

_ASK_AGAIN = timedelta(minutes=15)  # at the latest; the login renews what is about to end
_BEFORE = timedelta(minutes=1)


def address(account: Account, location: Location) -> StoreAddress:
    """The store as seen from the laptop, with the user's credentials."""
    seen = for_machines(account, location)
    return StoreAddress(
        seen.url, {**seen.options, "credential_provider": partial(_credentials, account)}
    )


def for_machines(account: Account, location: Location) -> StoreAddress:
    """The store as seen from a machine, which has credentials of its own. No secrets."""
    url = f"gs://{location.bucket}/{location.folder}".rstrip("/")
    base = account.url("storage").rstrip("/")
    if base == "https://storage.googleapis.com":
        return StoreAddress(url, {})
    options: dict[str, Any] = {"base_url": base}
    if base.startswith("http://"):
        options["client_options"] = {"allow_http": True}
    return StoreAddress(url, options)


def url_in(account: Account, location: Location, path: str) -> str:
    """Of a path in the store, for a machine that has nothing but Python yet."""
    from urllib.parse import quote

    inside = quote(f"{location.folder}/{path}" if location.folder else path)
    return account.url("storage", f"{location.bucket}/{inside}")


def _credentials(account: Account) -> dict[str, Any]:
    """What obstore calls when it needs a token. obstore's own needs Python 3.11."""
    login = account.login
    token = login.token()
    now = datetime.now(timezone.utc)
    ends = login.expiry.replace(tzinfo=timezone.utc) - _BEFORE if login.expiry else now
    later = now + _ASK_AGAIN
    return {"token": token, "expires_at": min(ends, later) if ends > now else later}
