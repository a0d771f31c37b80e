"""Workload identity federation: tokens of other identity providers against Google's own.

What the bearer of a token may do does not belong here.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from tests.simcloud.common.wire import Answer, Request
from tests.simcloud.gcp.wire import GCPError, answered

if TYPE_CHECKING:
    from tests.simcloud.gcp.accounts import Accounts

_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS = "urn:ietf:params:oauth:token-type:access_token"
_KINDS = ("urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token")
_POOL = "iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/ci"


class Federation:
    """One pool with one provider, whose tokens are known by heart."""

    audience = f"//{_POOL}/providers/forge"

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._subjects: dict[str, str] = {}  # principals by token

    def add(self, name: str) -> tuple[str, str, str]:
        """Somebody of the provider: the audience, a token of the provider, and the principal."""
        token, member = secrets.token_urlsafe(40), f"principal://{_POOL}/subject/{name}"
        self._subjects[token] = member
        self._accounts.add(member, "")
        return self.audience, token, member

    def exchange(self, request: Request) -> Answer:
        form = request.form
        if request.method != "POST" or form.get("grant_type") != _GRANT:
            raise GCPError("unsupported_grant_type", "Invalid grant_type", 400)
        wanted = (form.get("requested_token_type"), form.get("audience"))
        if wanted != (_ACCESS, self.audience) or form.get("subject_token_type") not in _KINDS:
            raise GCPError("invalid_request", "Invalid token type or audience", 400)
        member = self._subjects.get(form.get("subject_token", ""))
        if member is None:
            message = "The given credential is rejected by the attribute condition."
            raise GCPError("unauthorized_client", message, 401)
        scopes = tuple(form.get("scope", "").split())
        text, lasts = self._accounts.make_token(self._accounts.all[member], scopes)
        return answered(
            {
                "access_token": text,
                "issued_token_type": _ACCESS,
                "token_type": "Bearer",
                "expires_in": int(lasts),
            }
        )
