"""What the API server answers, and what we call it."""

from __future__ import annotations

import re
import ssl
from typing import Any

from sojourn.core.errors import (
    LIST_ALL,
    AuthError,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)

__all__ = ["Expired", "Rejected", "refusal", "strange_answer", "unreachable", "untrusted"]

_QUOTA = re.compile(
    r"exceeded quota|(maximum|minimum) .* usage per|limit to request ratio per|LimitRange",
    re.IGNORECASE,
)
_AMOUNTS = re.compile(r"failed quota: .*must specify (?P<what>.+)")
_NAMESPACE = re.compile(r'namespaces? "(?P<name>[^"]+)" not found')
_ENDING = "because it is being terminated"
_ADMISSION = re.compile(r"admission webhook .* denied|ValidatingAdmissionPolicy")
_POLICY = re.compile(r'violates PodSecurity "(?P<level>[^":]+)')
_FORBIDDEN = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
)
_GRANTING = "attempting to grant RBAC permissions not currently held"
_RULE = re.compile(
    r"APIGroups:\[(?P<groups>[^\]]*)\], Resources:\[(?P<resources>[^\]]*)\]"
    r".*?Verbs:\[(?P<verbs>[^\]]*)\]"
)
_QUOTED = re.compile(r'"([^"]*)"')


class Rejected(SojournError):
    """An admission rule of the cluster refused a pod; `level` of the Pod Security Standards."""

    def __init__(self, message: str, level: str = "", *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.level = level


class Expired(Transient):
    """The rest of a long list is no longer to be had."""


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
    if code in (400, 422):
        return Rejected(message) if _ADMISSION.search(told) else InvalidInput(what, _short(told))
    if code == 404:
        return _absent(message, told)
    if code == 409:
        return _taken(what, status) or Conflict(message, hint="Try again.")
    if code == 410:
        return Expired(message, hint="Try again.")
    return Transient(message, hint="Try again to continue where it stopped.")


def _taken(what: str, status: dict[str, Any]) -> Conflict | None:
    """If it is about fields that somebody else set."""
    causes = (status.get("details") or {}).get("causes") or []
    fields = [cause for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    if not fields:
        return None
    told = ", ".join(f"{cause.get('field')} ({cause.get('message')})" for cause in fields)
    return Conflict(
        f"{what} was changed by somebody else: {told}",
        hint="Undo that change with the tool that made it, or delete the object, and try again.",
    )


def _absent(message: str, told: str) -> NotFound:
    missing = _NAMESPACE.search(told)
    if missing:
        name = missing["name"]
        return NotFound(
            f"Namespace {name} not found",
            hint=f"Run `kubectl create namespace {name}`, or set SOJOURN_K8S_NAMESPACE.",
        )
    return NotFound(message, hint=LIST_ALL)


def _forbidden(what: str, told: str, namespace: str) -> SojournError:
    policy = _POLICY.search(told)
    if policy:
        return Rejected(f"{what}: {told}", policy["level"])
    if _ADMISSION.search(told):
        return Rejected(f"{what}: {told}")
    if _ENDING in told:
        return Transient(
            f"{what}: namespace {namespace} is being deleted",
            hint="Wait until it is gone, or set SOJOURN_K8S_NAMESPACE to another one.",
        )
    amounts = _AMOUNTS.search(told)
    if amounts:
        return QuotaError(
            f"{what}: {told}",
            hint=f"Set {amounts['what']} with options.pod, or ask for a LimitRange with defaults.",
        )
    if _QUOTA.search(told):
        return QuotaError(
            f"{what}: {told}",
            hint=f"Delete unused resources in namespace {namespace}, choose a smaller machine, "
            "or ask for a larger quota.",
        )
    if _GRANTING in told:
        return _granting(what, told)
    found = _FORBIDDEN.search(told)
    if found:
        group = f".{found['group']}" if found["group"] else ""
        need = f"{found['verb']} {found['resource']}{group}"
        where = "the whole cluster" if "cluster scope" in told else f"namespace {namespace}"
        return AuthError(
            f"{what}: not allowed to {need} in {where}",
            hint=f"Ask for a role that may {need}; docs/kubernetes.md has the least one.",
        )
    return AuthError(f"{what}: {told}", hint="docs/kubernetes.md has the least role.")


def _granting(what: str, told: str) -> AuthError:
    """Nobody may give others more rights than they have."""
    held = told.partition(_GRANTING)[2]
    rights = ", ".join(
        f"{verb} {resource}" + (f".{group}" if group else "")
        for found in _RULE.finditer(held)
        for group in _QUOTED.findall(found["groups"])
        for resource in _QUOTED.findall(found["resources"])
        for verb in _QUOTED.findall(found["verbs"])
    )
    return AuthError(
        f"{what}: not allowed to grant rights that you do not have: {rights or held.strip()}",
        hint="Ask for a role that may do this itself; docs/kubernetes.md has the least one.",
    )


def _short(told: str) -> str:
    return told if len(told) <= 500 else told[:497] + "..."


def unreachable(server: str, error: Exception) -> Transient:
    """No answer at all."""
    told = str(error) or type(error).__name__
    return Transient(
        f"Could not reach the Kubernetes API server at {server}: {told}",
        hint="Check your network and your kubeconfig, and try again.",
    )


def untrusted(server: str, error: BaseException) -> AuthError | None:
    """If the two ends do not trust each other, which no repetition changes."""
    cause: BaseException | None = error
    while cause is not None:
        told = str(cause)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return AuthError(
                f"Could not verify the certificate of {server}: {cause.verify_message or told}",
                hint="Check certificate-authority and tls-server-name in your kubeconfig.",
            )
        if isinstance(cause, ssl.SSLError) and "alert" in told.lower() and "cert" in told.lower():
            return AuthError(
                f"{server} rejected the client certificate",
                hint="Log in again with your provider's tool, or update your kubeconfig.",
            )
        cause = cause.__cause__ or cause.__context__
    return None


def strange_answer(server: str) -> AuthError:
    """Somebody answered, who is no API server."""
    return AuthError(
        f"{server} did not answer as a Kubernetes API server does",
        hint="Check server and proxy-url in your kubeconfig, and log in again.",
    )
