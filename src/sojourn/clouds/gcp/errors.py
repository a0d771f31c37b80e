"""What Google calls its errors, and what we call them."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.clouds.vm import rest
from sojourn.clouds.vm.errors import absent, in_use, later, no_capacity, taken, unknown, unreachable
from sojourn.clouds.vm.rest import Refused, Unreachable
from sojourn.core.errors import AuthError, Conflict, InvalidInput, QuotaError, SojournError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.clouds.gcp.credentials import Login

__all__ = ["is_denied", "may_pass", "of_operation", "reason_of", "translated"]

_ABSENT = frozenset(("notFound", "NOT_FOUND", "RESOURCE_NOT_FOUND"))
_TAKEN = frozenset(("alreadyExists", "ALREADY_EXISTS", "conflict", "RESOURCE_ALREADY_EXISTS"))
_CHANGED = frozenset(("conditionNotMet", "ABORTED", "CONDITION_NOT_MET"))
_IN_USE = frozenset(("resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"))
_LATER = frozenset(("backendError", "internalError", "resourceNotReady", "RESOURCE_NOT_READY"))
_RATE = frozenset(("rateLimitExceeded", "userRateLimitExceeded"))
_QUOTA = frozenset(("quotaExceeded", "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED", "limitExceeded"))
_NO_CAPACITY = re.compile(r"ZONE_RESOURCE_POOL_EXHAUSTED|RESOURCE_POOL_EXHAUSTED|STOCKOUT")
_DISABLED = re.compile(
    r"(?P<service>[a-z]+)\.googleapis\.com/overview|API \[?(?P<named>[a-z]+)\.googleapis\.com"
    r"|\b(?P<plain>[a-z]+)\.googleapis\.com\b.*has not been used"
)
_PERMISSION = re.compile(
    r"(?:Required '|Permission '|does not have |permission )(?P<permission>[a-z]+\.\w+\.\w+)"
)
_NOT_AS = re.compile(r"does not have access to service account")
_PAGE = "see docs/gcp.md for the full role"


@dataclass(frozen=True)
class _Told:
    """The parts of an error that count."""

    status: int
    reason: str
    message: str
    details: Any = ()


def reason_of(error: BaseException) -> str:
    """Google's own name of an error; empty if it is none of Google's."""
    cause = error.__cause__ or error
    return _read(cause).reason if isinstance(cause, Refused) else ""


def is_denied(error: SojournError) -> bool:
    """Whether it is about this one thing; else nothing at all can be done in the project."""
    return isinstance(error, AuthError) and reason_of(error) == "forbidden"


@contextmanager
def translated(what: str, login: Login) -> Iterator[None]:
    """Let errors of the API out as ours."""
    try:
        yield
    except Refused as error:
        raise _ours(what, _read(error), login) from error
    except Unreachable as error:
        raise unreachable(what, error) from error


def may_pass(status: int, content: Any) -> bool:
    """Whether a call that was refused in this way is worth another try.

    Compute Engine denies access to those who ask too often, and IAM says that they do to those who
    have too many accounts.
    """
    told = _told(status, content, "")
    if _is_rate(told):
        return True
    return rest.may_pass(status, content) and told.reason not in _QUOTA


def of_operation(what: str, operation: Any) -> SojournError:
    """What an operation failed of, after it had begun."""
    [first, *_] = operation["error"]["errors"]
    status = int(operation.get("httpErrorStatusCode", 400))
    told = _Told(status, str(first.get("code", "")), str(first.get("message", "")))
    return _ours(what, told, None)


def _read(error: Refused) -> _Told:
    return _told(error.status, error.json, error.text)


def _told(status: int, content: Any, text: str) -> _Told:
    body = content.get("error", {}) if isinstance(content, dict) else {}
    if not isinstance(body, dict):  # of those who give out tokens
        return _Told(status, str(body), str(content.get("error_description", body)))
    errors = body.get("errors") or [{}]
    reason = str(errors[0].get("reason") or body.get("status") or "")
    message = str(body.get("message") or text[:300] or status)
    return _Told(status, reason, message, body.get("details", ()))


def _is_rate(told: _Told) -> bool:
    """Whether it is about too many calls, rather than too many things."""
    return told.reason in _RATE or (told.reason in _QUOTA and "quota metric" in told.message)


def _ours(what: str, told: _Told, login: Login | None) -> SojournError:
    message = f"{what}: {told.message}"
    if told.status == 404 or told.reason in _ABSENT:
        return absent(message)
    if told.status == 401:
        return _rejected(told, login)
    if _NO_CAPACITY.search(f"{told.reason} {told.message}"):
        return no_capacity(message, "zone")
    if told.reason in _QUOTA and not _is_rate(told):
        return _quota(message)
    if _is_rate(told) or told.reason in _LATER or told.status >= 500 or told.status == 429:
        return later(message)
    if told.status == 403:
        return _denied(message, told)
    if told.reason in _TAKEN:
        return taken(message)
    if told.reason in _CHANGED or told.status in (409, 412):
        return Conflict(message, hint="Try again: somebody else changed it at the same time.")
    if told.reason in _IN_USE:
        return in_use(message)
    if told.status == 400:
        return InvalidInput(what, told.message)
    return unknown(message)


def _rejected(told: _Told, login: Login | None) -> AuthError:
    source = login.source if login else "your login"
    return AuthError(
        f"Google Cloud rejected the credentials from {source}: {told.message}",
        hint="Run `gcloud auth application-default login`, or use another key file. "
        "Run `sojourn doctor` to see your identity.",
    )


def _quota(message: str) -> QuotaError:
    if "service accounts" in message.lower() or "ServiceAccount" in message:
        return QuotaError(
            message,
            hint="A project has 100 service accounts unless you request more. Request an increase "
            "in the IAM quotas, delete unused tasks, or set permission_set to an account that "
            "tasks share.",
        )
    return QuotaError(
        message,
        hint="Request an increase in the console's Quotas page, or delete unused resources.",
    )


def _denied(message: str, told: _Told) -> AuthError:
    service = _disabled_service(told)
    if service:
        return AuthError(message, hint=f"Run `gcloud services enable {service}` to enable it.")
    if "billing" in told.message.lower():
        return AuthError(message, hint="Enable billing for the project.")
    permission = _missing_permission(told)
    return AuthError(message, hint=f"Allow {permission or 'the action'}; {_PAGE}.")


def _missing_permission(told: _Told) -> str:
    for detail in told.details:
        if detail.get("reason") == "IAM_PERMISSION_DENIED":
            return str(detail.get("metadata", {}).get("permission", ""))
    if _NOT_AS.search(told.message):  # here, Google names a role instead
        return "iam.serviceAccounts.actAs"
    found = _PERMISSION.search(told.message)
    return found["permission"] if found else ""


def _disabled_service(told: _Told) -> str:
    for detail in told.details:
        if detail.get("reason") == "SERVICE_DISABLED":
            return str(detail.get("metadata", {}).get("service", ""))
    if told.reason != "accessNotConfigured":
        return ""
    found = _DISABLED.search(told.message)
    name = next((part for part in found.groups() if part), "") if found else ""
    return f"{name}.googleapis.com" if name else ""
