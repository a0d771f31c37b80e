"""Microsoft Entra ID: who there is, and the tokens that they get.

What a principal may do does not belong here, see `rights`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from tests.simcloud.az.timing import Timing
from tests.simcloud.az.tls import LOGIN
from tests.simcloud.az.wire import ArmError, reply, segments
from tests.simcloud.common.clock import Clock
from tests.simcloud.common.wire import Answer, Request

ARM_AUDIENCES = ("https://management.azure.com", "https://management.core.windows.net")
STORAGE_AUDIENCE = "https://storage.azure.com"


@dataclass(frozen=True)
class Principal:
    """Somebody who can have tokens and roles."""

    name: str
    object_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    client_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    secret: str = field(default="", repr=False)
    resource: str = ""  # of a managed identity


class EntraError(Exception):
    """A refusal as the token endpoint puts it."""

    def __init__(self, status: int, error: str, number: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.error = error
        self.code = f"AADSTS{number}"
        self.number = number
        self.text = text

    def answer(self) -> Answer:
        said = {
            "error": self.error,
            "error_description": f"{self.code}: {self.text} Trace ID: {uuid.uuid4()}",
            "error_codes": [self.number],
            "correlation_id": str(uuid.uuid4()),
        }
        return reply(self.status, said)


class Directory:
    """The tenant. Its methods are called with the account's lock held."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self.tenant = str(uuid.uuid4())
        self._clock = clock
        self._timing = timing
        self._key = secrets.token_bytes(32)
        self._principals: dict[str, Principal] = {}
        self._former: dict[str, Principal] = {}
        self._known_at: dict[str, float] = {}
        self.federated: dict[str, str] = {}  # tokens of another issuer, by who they stand for
        self.valid_since = 0.0  # all older tokens have run out

    def add(self, principal: Principal, ready: float = 0.0) -> Principal:
        """One that is known to role assignments after a while."""
        self._principals[principal.object_id] = principal
        self._known_at[principal.object_id] = self._clock.now() + ready
        return principal

    def remove(self, object_id: str) -> None:
        """It gets no more tokens. Those that it has are good until they run out."""
        former = self._principals.pop(object_id, None)
        if former:
            self._former[object_id] = former

    def exists(self, object_id: str) -> bool:
        return object_id in self._principals

    def by_client(self, client_id: str) -> Principal:
        return next(p for p in self._principals.values() if p.client_id == client_id)

    def knows(self, object_id: str) -> bool:
        there = object_id in self._principals
        return there and self._known_at[object_id] <= self._clock.now()

    # What the login server answers

    def answer(self, name: str, request: Request) -> Answer:
        if name == "entra.token":
            return self._token(request)
        tenant = segments(request.path)[0]
        base = f"https://{LOGIN}/{tenant}"
        if name == "entra.discovery":
            endpoint = f"https://{LOGIN}/{self.tenant}/v2.0/.well-known/openid-configuration"
            return reply(200, {"tenant_discovery_endpoint": endpoint, "metadata": []})
        self._check_tenant(tenant)
        said = {
            "token_endpoint": f"{base}/oauth2/v2.0/token",
            "authorization_endpoint": f"{base}/oauth2/v2.0/authorize",
            "device_authorization_endpoint": f"{base}/oauth2/v2.0/devicecode",
            "jwks_uri": f"{base}/discovery/v2.0/keys",
            "issuer": f"{base}/v2.0",
        }
        return reply(200, said)

    def _token(self, request: Request) -> Answer:
        self._check_tenant(segments(request.path)[0])
        form = request.form
        if form.get("grant_type") != "client_credentials":
            raise NotImplementedError(f"The grant {form.get('grant_type')} is not known here")
        principal = self._client(form)
        audience = form.get("scope", "").removesuffix("/.default").rstrip("/")
        if not form.get("scope", "").endswith("/.default"):
            text = f"The provided request must include a valid 'scope': {form.get('scope')}"
            raise EntraError(400, "invalid_scope", 1002012, text)
        if audience not in (*ARM_AUDIENCES, STORAGE_AUDIENCE):
            text = f"The resource principal named {audience} was not found in the tenant."
            raise EntraError(400, "invalid_resource", 500011, text)
        seconds = int(self._timing.token)
        return reply(
            200,
            {
                "token_type": "Bearer",
                "expires_in": seconds,
                "ext_expires_in": seconds,
                "access_token": self.issue(principal, audience, seconds),
            },
        )

    def _client(self, form: Mapping[str, str]) -> Principal:
        client = form.get("client_id", "")
        found = next((p for p in self._principals.values() if p.client_id == client), None)
        if found is None or not found.secret:
            text = f"Application with identifier '{client}' was not found in the directory."
            raise EntraError(400, "unauthorized_client", 700016, text)
        if "client_assertion" in form:
            if form["client_assertion"] != self.federated.get(client):
                text = "No matching federated identity record found for presented assertion."
                raise EntraError(401, "invalid_client", 70021, text)
        elif form.get("client_secret") != found.secret:
            text = f"Invalid client secret provided for app '{client}'."
            raise EntraError(401, "invalid_client", 7000215, text)
        return found

    def _check_tenant(self, tenant: str) -> None:
        if tenant != self.tenant:
            raise EntraError(400, "invalid_request", 90002, f"Tenant '{tenant}' not found.")

    # Tokens

    def issue(self, principal: Principal, audience: str, seconds: float) -> str:
        """A token in the form that they have, which only we can verify."""
        now = time.time()  # which the client's clock has, too
        claims = {
            "aud": audience,
            "iss": f"https://sts.windows.net/{self.tenant}/",
            "iat": now,
            "nbf": int(now),
            "exp": int(now + seconds),
            "appid": principal.client_id,
            "oid": principal.object_id,
            "sub": principal.object_id,
            "tid": self.tenant,
            "ver": "1.0",
        }
        if principal.resource:
            claims["xms_mirid"] = principal.resource
        signed = f"{_part({'typ': 'JWT', 'alg': 'RS256'})}.{_part(claims)}"
        return f"{signed}.{self._signature(signed)}"

    def verify(self, authorization: str, audiences: Iterable[str]) -> Principal:
        """Whose token this is."""
        kind, _, token = authorization.partition(" ")
        if kind != "Bearer" or not token:
            text = "Authentication failed. The 'Authorization' header is missing."
            raise ArmError(401, "AuthenticationFailed", text)
        signed, _, signature = token.rpartition(".")
        if not signed or not hmac.compare_digest(signature, self._signature(signed)):
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.")
        claims = json.loads(base64.urlsafe_b64decode(signed.partition(".")[2] + "=="))
        self._check(claims, audiences)
        return {**self._former, **self._principals}[claims["oid"]]

    def _check(self, claims: Mapping[str, Any], audiences: Iterable[str]) -> None:
        now = time.time()
        if claims["exp"] <= now or claims["iat"] < self.valid_since:
            over, today = (datetime.fromtimestamp(t, timezone.utc) for t in (claims["exp"], now))
            text = f"The access token expiry UTC time '{over}' is earlier than current '{today}'."
            raise ArmError(401, "ExpiredAuthenticationToken", text)
        if claims["aud"] not in audiences:
            text = f"The access token has been obtained for wrong audience '{claims['aud']}'."
            raise ArmError(401, "InvalidAuthenticationTokenAudience", text)

    def _signature(self, signed: str) -> str:
        return _text(hmac.new(self._key, signed.encode(), hashlib.sha256).digest())


def _part(content: Mapping[str, Any]) -> str:
    return _text(json.dumps(content).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
