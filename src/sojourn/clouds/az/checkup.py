"""What `sojourn doctor` can tell of a subscription without making anything in it.

Nothing here is a problem: who has a subscription need not use it for this.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az.regions import region
from sojourn.core.errors import SojournError
from sojourn.core.finding import Finding
from sojourn.core.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.az.account import Account

__all__ = ["look"]

_PROVIDERS = (
    "Microsoft.Compute",
    "Microsoft.Insights",
    "Microsoft.ManagedIdentity",
    "Microsoft.Network",
    "Microsoft.Storage",
)
_QUOTAS = {"cores": "on demand", "lowPriorityCores": "spot"}


def look(account: Account) -> Iterator[Finding]:
    """Who the user is, where tasks go, and what seems to be missing."""
    here = region(Task("#!/bin/sh").region)
    try:
        about = account.call("subscription", "GET", account.scope)
        who = _identity(account.management_token())
    except SojournError as error:
        yield Finding.failed("az identity", error)
        return
    yield Finding("ok", "az identity", f"{who} in subscription {about['displayName']}")
    yield Finding("ok", "az region", f"{here} by default")
    yield _providers(account)
    yield from _quotas(account, here)


def _identity(token: str) -> str:
    """Whom a token is of, by what it says itself."""
    try:
        part = token.split(".")[1]
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (IndexError, ValueError):
        return "signed in"
    names = ("upn", "preferred_username", "unique_name", "appid", "oid")
    return next((str(claims[name]) for name in names if claims.get(name)), "signed in")


def _providers(account: Account) -> Finding:
    missing = []
    for name in _PROVIDERS:
        try:
            state = account.call("providers", "GET", f"providers/{name}")["registrationState"]
        except SojournError as error:
            return Finding.failed("az providers", error)
        if state != "Registered":
            missing.append(name)
    if missing:
        orders = "; ".join(f"`az provider register --namespace {name}`" for name in missing)
        return Finding(
            "note", "az providers", f"not registered: {', '.join(missing)}; run {orders}"
        )
    return Finding("ok", "az providers", "all registered")


def _quotas(account: Account, here: str) -> Iterator[Finding]:
    try:
        path = f"providers/Microsoft.Compute/locations/{here}/usages"
        known = {each["name"]["value"]: each for each in account.pages("quotas", path)}
    except SojournError:
        return  # one may do without knowing
    found = [f"{known[n]['limit']} {label}" for n, label in _QUOTAS.items() if n in known]
    if found:
        yield Finding("ok", "az quotas", f"vCPU limits in {here}: {', '.join(found)}")
