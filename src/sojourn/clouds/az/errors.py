"""What Azure calls its errors, and what we call them: httpx's exceptions stop here."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sojourn.clouds.az.credentials import used
from sojourn.clouds.vm.errors import absent, later, no_capacity, taken, unknown, unreachable
from sojourn.core.errors import (
    AuthError,
    CapacityError,
    Conflict,
    InvalidInput,
    QuotaError,
    SojournError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["code_of", "told_by", "translated"]

_DENIED = frozenset(
    {"AuthorizationFailed", "LinkedAuthorizationFailed", "RequestDisallowedByPolicy"}
)
_LATER = frozenset(
    {
        "AnotherOperationInProgress",
        "Conflict",
        "ContainerBeingDeleted",
        "OperationPreempted",
        "ResourceGroupBeingDeleted",
        "RetryableError",
        "StorageAccountOperationInProgress",
        "TooManyRequests",
    }
)
_NO_CAPACITY = frozenset(
    {
        "AllocationFailed",
        "OverconstrainedAllocationRequest",
        "OverconstrainedZonalAllocationRequest",
        "SkuNotAvailable",
        "ZonalAllocationFailed",
    }
)
_TAKEN = frozenset({"StorageAccountAlreadyExists", "StorageAccountAlreadyTaken"})
_QUOTA = re.compile(r"exceeding approved (?P<name>.+?) quota", re.IGNORECASE)
_LIMIT = re.compile(r"Current Limit: (?P<limit>\d+)")
_PRICE = re.compile(r"max price '(?P<price>[\d.]+)'.*current price '(?P<now>[\d.]+)'")
_NAMESPACE = re.compile(r"namespace '(?P<namespace>[\w.]+)'")
_ACTION = re.compile(r"action(\(s\))? '(?P<action>[\w./*]+)'")
_LOCKED = re.compile(r"locked: '(?P<scope>[^']+)'")


def told_by(error: BaseException) -> tuple[str, str]:
    """Azure's own code and words of an error; empty if it is none of Azure's."""
    content: Any = getattr(error, "json", None)
    inner = content.get("error") if isinstance(content, dict) else None
    if isinstance(inner, dict):
        return str(inner.get("code", "")), str(inner.get("message", ""))
    status = getattr(error, "status", 0)
    return (str(status), str(getattr(error, "text", ""))[:300]) if status else ("", "")


def code_of(error: BaseException) -> str:
    """Azure's own name of an error, or of what caused it; empty if it is none of Azure's."""
    return told_by(error.__cause__ or error)[0]


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Let the exceptions of calls out as ours."""
    from sojourn.clouds.vm.rest import Refused, Unreachable

    try:
        yield
    except Refused as error:
        raise _ours(error.status, *told_by(error), what) from error
    except Unreachable as error:
        raise unreachable(what, error) from error


def _ours(status: int, code: str, told: str, what: str) -> SojournError:
    message = f"{what}: {told} ({code})"
    if code == "SubscriptionNotFound":
        return AuthError(message, hint="Check AZURE_SUBSCRIPTION_ID and your login (`az login`).")
    if status == 404:
        return absent(message)
    if status == 401:
        shown = used()
        hint = f"{shown.remedy} Run `sojourn doctor` to see your identity."
        return AuthError(f"Azure rejected the credentials from {shown.source}: {told}", hint=hint)
    if status == 403 or code in _DENIED:
        return _denied(message, told)
    for known in (_about_quota, _about_rules):
        found = known(code, told, message)
        if found:
            return found
    if code in _LATER or status in (408, 429) or status >= 500:
        return later(message)
    if status == 400 or code.startswith(("Invalid", "PlatformImageNotFound")):
        return InvalidInput(what, f"{told} ({code})")
    return unknown(message)


def _denied(message: str, told: str) -> AuthError:
    actions = [found["action"] for found in _ACTION.finditer(told)]
    # Where there are two, the first one is allowed, and the last one is not.
    allow = f"Allow {actions[-1]}" if actions else "Ask for the permission"
    return AuthError(message, hint=f"{allow}; see docs/azure.md for the full role.")


def _about_quota(code: str, told: str, message: str) -> SojournError | None:
    """Of machines that cannot be had: too many, too expensive, or none there."""
    quota, limit, price = _QUOTA.search(told), _LIMIT.search(told), _PRICE.search(told)
    if quota:
        size = f" of {limit['limit']}" if limit else ""
        return QuotaError(
            f"The quota {quota['name']!r}{size} is too small ({code})",
            hint="Request an increase in the Azure portal under Quotas, or choose another machine "
            "or region.",
        )
    if price:
        return CapacityError(
            f"The spot price is {price['now']} USD per hour, above the maximum of {price['price']}",
            hint="Try again later, or with a higher spot price.",
        )
    if code in _NO_CAPACITY:
        return no_capacity(message)
    if code.endswith(("QuotaExceeded", "LimitExceeded", "QuotaReached")):
        return QuotaError(
            message, hint="Request an increase in the Azure portal, or delete unused resources."
        )
    return None


def _about_rules(code: str, told: str, message: str) -> SojournError | None:
    """Of what the subscription does not allow as it is."""
    if code == "MissingSubscriptionRegistration":
        found = _NAMESPACE.search(told)
        name = found["namespace"] if found else "NAMESPACE"
        return AuthError(
            f"The subscription is not registered to use {name} ({code})",
            hint=f"Run `az provider register --namespace {name}` and try again in a few minutes.",
        )
    if code == "ScopeLocked":
        scope = _LOCKED.search(told)
        where = f" of {scope['scope']}" if scope else ""
        return Conflict(message, hint=f"Remove the lock{where} and try again.")
    if code in _TAKEN:
        return taken(message)
    return None
