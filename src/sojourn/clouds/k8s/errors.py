"""What the API server answers, and what we call it."""

from __future__ import annotations

import re
from typing import Any

from sojourn.core.errors import (
    AuthError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)

__all__ = ["Rejected", "refusal", "unreachable"]

_QUOTA = re.compile(r"exceeded quota|maximum .* usage per|LimitRange", re.IGNORECASE)
_POLICY = re.compile(r'violates PodSecurity "(?P<level>[^":]+)')
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)


class Rejected(SojournError):
    """An admission rule of the cluster refused a pod; `level` of the Pod Security Standards."""

    def __init__(self, message: str, level: str = "", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.level = level


def refusal(what: str, code: int, status: dict[str, Any], namespace: str) -> SojournError:
    """An answer that is an error, as one of ours; `status` is the server's own account of it."""
    told = str(status.get("message") or status.get("reason") or f"HTTP status {code}")
    message = f"{what}: {told}"
    if code == 401:
        return AuthError(
            "The Kubernetes API server rejected the credentials",
            hint="Log in again with your provider's tool; run `sojourn doctor` for details.",
        )
    if code == 403:
        return _forbidden(what, told, namespace)
    if code == 404:
        return NotFound(message, hint="Run `sojourn list` to see all tasks.")
    if code == 409:
        return Conflict(message, hint="Try again.")
    if code in (400, 422):
        return InvalidInput(what, _short(told))
    return Transient(message, hint="Try again to continue where it stopped.")


def _forbidden(what: str, told: str, namespace: str) -> SojournError:
    policy = _POLICY.search(told)
    if policy:
        return Rejected(f"{what}: {told}", policy["level"])
    if _QUOTA.search(told):
        return QuotaError(
            f"{what}: {told}",
            hint=f"Delete unused resources in namespace {namespace}, choose a smaller machine, "
            "or ask for a larger quota.",
        )
    found = _FORBIDDEN.search(told)
    if found:
        group = f".{found['group']}" if found["group"] else ""
        need = f"{found['verb']} {found['resource']}{group}"
        return AuthError(
            f"{what}: not allowed to {need} in namespace {namespace}",
            hint=f"Ask for a role that may {need}; docs/kubernetes.md has the least one.",
        )
    return AuthError(f"{what}: {told}", hint="docs/kubernetes.md has the least role.")


def _short(told: str) -> str:
    return told if len(told) <= 500 else told[:497] + "..."


def unreachable(server: str, error: Exception) -> Transient:
    """No answer at all."""
    told = str(error) or type(error).__name__
    return Transient(
        f"Could not reach the Kubernetes API server at {server}: {told}",
        hint="Check your network and your kubeconfig, and try again.",
    )
