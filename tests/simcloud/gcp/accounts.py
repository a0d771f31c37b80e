"""Service accounts with their keys and tokens: who a caller is.

What callers can do about accounts does not belong here, see `iam`; nor what they may do, see
`policies`.
"""

from __future__ import annotations

import base64
import functools
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request
from tests.simcloud.gcp.federation import Federation
from tests.simcloud.gcp.policies import Policy
from tests.simcloud.gcp.timing import Timing
from tests.simcloud.gcp.wire import GCPError, answered

CLOUD_PLATFORM = "https://www.googleapis.com/auth/cloud-platform"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LONGEST = 3600
_SKEW = 300


def member_of(who: str) -> str:
    """As in a binding: a service account, or somebody of another identity provider."""
    return who if who.startswith("principal:") else f"serviceAccount:{who}"


@dataclass
class Account:
    """A service account."""

    email: str
    project: str
    uid: str
    known_at: float = 0.0  # when policies know of it
    display_name: str = ""
    description: str = ""
    disabled: bool = False
    policy: Policy = field(default_factory=Policy)
    keys: dict[str, rsa.RSAPublicKey] = field(default_factory=dict)

    @property
    def member(self) -> str:
        return member_of(self.email)


@dataclass(frozen=True)
class Token:
    """An access token."""

    account: Account
    scopes: tuple[str, ...]
    expires: float


class Accounts:
    """All that can call, by address, and the tokens that they were given."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self._clock = clock
        self._timing = timing
        self._tokens: dict[str, Token] = {}
        self.federation = Federation(self)
        self.all: dict[str, Account] = {}

    def add(self, email: str, project: str, known_at: float = 0.0) -> Account:
        uid = "1" + "".join(secrets.choice("0123456789") for _ in range(20))
        self.all[email] = Account(email, project, uid, known_at)
        return self.all[email]

    def find(self, named: str) -> Account | None:
        """By address or by number."""
        for account in self.all.values():
            if named in (account.email, account.uid):
                return account
        return None

    def knows(self, email: str) -> bool:
        """Whether other services have heard of it."""
        account = self.all.get(email)
        return account is not None and account.known_at <= self._clock.now()

    def make_key(self, account: Account, token_uri: str) -> dict[str, str]:
        """A new key, as the file that its holder gets."""
        key = _rsa(account.email)
        key_id = secrets.token_hex(20)
        account.keys[key_id] = key.public_key()
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return {
            "type": "service_account",
            "project_id": account.project,
            "private_key_id": key_id,
            "private_key": pem.decode(),
            "client_email": account.email,
            "client_id": account.uid,
            "token_uri": token_uri,
            "universe_domain": "googleapis.com",
        }

    def make_token(self, account: Account, scopes: tuple[str, ...]) -> tuple[str, float]:
        """A token, and in how many seconds it expires."""
        text = f"ya29.{secrets.token_urlsafe(60)}"
        lasts = self._timing.token
        self._tokens[text] = Token(account, scopes, self._clock.now() + lasts)
        return text, lasts

    def caller(self, request: Request) -> Token:
        """Whose token a request has."""
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        token = self._tokens.get(text.strip())
        if kind.lower() != "bearer" or token is None or token.expires <= self._clock.now():
            raise unauthenticated(bool(text))
        if self.all.get(token.account.email) is not token.account or token.account.disabled:
            raise unauthenticated(True)
        return token

    def exchange(self, request: Request, audience: str) -> Answer:
        """The endpoint for tokens: a signed assertion against a token."""
        form = request.form
        if request.method != "POST" or form.get("grant_type") != _GRANT:
            raise GCPError("unsupported_grant_type", "Invalid grant_type", 400)
        header, claims, signed, signature = _parts(form.get("assertion", ""))
        account = self.all.get(str(claims.get("iss", "")))
        if account is None:
            raise _bad_grant("Invalid grant: account not found")
        _check_signature(account, header, signed, signature)
        self._check_claims(claims, audience)
        scopes = tuple(str(claims.get("scope", "")).split())
        if not scopes:
            message = "Invalid OAuth scope or ID token audience provided."
            raise GCPError("invalid_scope", message, 400)
        text, lasts = self.make_token(account, scopes)
        return answered(
            {"access_token": text, "expires_in": max(int(lasts), 1), "token_type": "Bearer"}
        )

    def _check_claims(self, claims: Mapping[str, Any], audience: str) -> None:
        now, issued, ends = self._clock.now(), claims.get("iat"), claims.get("exp")
        if claims.get("aud") not in (audience, "https://oauth2.googleapis.com/token"):
            raise _bad_grant("Invalid JWT: the audience is not this endpoint")
        if not isinstance(issued, int) or not isinstance(ends, int):
            raise _bad_grant("Invalid JWT: iat and exp must be numbers")
        if ends - issued > _LONGEST or ends < now - _SKEW or issued > now + _SKEW:
            raise _bad_grant(
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable "
                "timeframe. Check your iat and exp values in the JWT claim."
            )


@functools.cache
def _rsa(email: str) -> rsa.RSAPrivateKey:
    """It takes a while, and every project has an administrator. Key IDs are always new."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def unauthenticated(given: bool) -> GCPError:
    """What a request without a token, or with one that is not good, is told."""
    said = (
        "Request had invalid authentication credentials."
        if given
        else "Request is missing required authentication credential."
    )
    message = (
        f"{said} Expected OAuth 2 access token, login cookie or other valid authentication "
        f"credential."
    )
    reason = "authError" if given else "required"
    where = ("Authorization", "header")
    return GCPError(reason, message, 401, rpc="UNAUTHENTICATED", location=where)


def _parts(assertion: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    try:
        head, body, signature = assertion.split(".")
        header, claims = json.loads(_decoded(head)), json.loads(_decoded(body))
        return header, claims, f"{head}.{body}".encode(), _decoded(signature)
    except ValueError:
        raise _bad_grant("Bad Request: the assertion is no JWT") from None


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _check_signature(
    account: Account, header: Mapping[str, Any], signed: bytes, signature: bytes
) -> None:
    key = account.keys.get(str(header.get("kid", "")))
    if key is None or header.get("alg") != "RS256":
        raise _bad_grant("Invalid JWT Signature.")
    try:
        key.verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())
    except InvalidSignature:
        raise _bad_grant("Invalid JWT Signature.") from None


def _bad_grant(message: str) -> GCPError:
    return GCPError("invalid_grant", message, 400)
