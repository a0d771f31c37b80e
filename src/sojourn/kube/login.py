"""Credentials as the API server wants to see them, fresh whenever they are asked for."""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import subprocess
import tempfile
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.core.errors import AuthError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sojourn.kube.kubeconfig import Cluster, Login, User

__all__ = ["Credentials"]

_READ_EVERY = 60.0  # seconds; a token in a file is renewed by whoever wrote it
_EARLY = 30.0  # seconds before its end that a token is renewed
_PLUGIN_WITHIN = 120.0  # seconds; somebody may have to log in in a browser
_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----.+?-----END [A-Z0-9 ]+-----", re.DOTALL)
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Credentials:
    """The headers and the TLS context of one login. Constructors do no I/O."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0  # by time.time()
        self._certificate: tuple[bytes, bytes] = (login.user.certificate, login.user.key)
        self._renewals = 0

    def headers(self, *, refused: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a request carries; `refused`: what one carried that was turned away."""
        user = self._login.user
        if user.password:
            plain = ":".join(user.password).encode()
            made = {"Authorization": f"Basic {base64.b64encode(plain).decode()}"}
        else:
            with self._lock:
                token = self._current(user, refused)
            made = _bearer(token) if token else {}
        return {**made, **user.impersonated}

    @property
    def can_renew(self) -> bool:
        """Whether asking again may bring other credentials."""
        return bool(self._login.user.token_file or self._login.user.plugin)

    @property
    def renewals(self) -> int:
        """How often there was another certificate: connections with the former are outdated."""
        return self._renewals

    def _current(self, user: User, refused: Mapping[str, str] | None) -> str:
        if user.token and not user.token_file:
            return user.token
        # Of many threads that were turned away, one asks for another token.
        carried = f"Bearer {self._token}" if self._token else None
        again = refused is not None and refused.get("Authorization") == carried
        if time.time() < self._until and not again:
            return self._token
        if user.token_file:
            self._token = _read_token(user.token_file, self._token or user.token)
            self._until = time.time() + _READ_EVERY
        elif user.plugin:
            self._ask(user.plugin)
        return self._token

    def _ask(self, plugin: dict[str, Any]) -> None:
        status = _ask(plugin, self._login.cluster)
        self._token = str(status.get("token") or "").strip()
        self._until = _until(status)
        certificate = (
            str(status.get("clientCertificateData") or "").encode(),
            str(status.get("clientKeyData") or "").encode(),
        )
        if certificate[0] and certificate != self._certificate:
            self._certificate = certificate
            self._renewals += 1

    def tls(self) -> ssl.SSLContext | None:
        """None for a server without TLS. It knows the server's name, if that is another."""
        cluster = self._login.cluster
        if not cluster.server.startswith("https://"):
            return None
        if self._login.user.plugin:
            self.headers()  # the certificate may come with the token
        try:
            return _context(cluster, *self._certificate)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise AuthError(
                f"The certificates in {self._login.source} are not valid: {error}",
                hint="Update your kubeconfig with your provider's tool.",
            ) from error


class _Context(ssl.SSLContext):
    """Asks for the server by the name in its certificate, whatever the address is.

    httpx has a way to say so, but forgets it behind a proxy.
    """

    server_name = ""

    def wrap_socket(self, *args: Any, **more: Any) -> ssl.SSLSocket:
        return super().wrap_socket(*args, **self._named(more))

    def wrap_bio(self, *args: Any, **more: Any) -> ssl.SSLObject:
        return super().wrap_bio(*args, **self._named(more))

    def _named(self, more: dict[str, Any]) -> dict[str, Any]:
        return {**more, "server_hostname": self.server_name} if self.server_name else more


def _context(cluster: Cluster, certificate: bytes, key: bytes) -> ssl.SSLContext:
    # Not create_default_context: from Python 3.13 on it refuses authorities that all others accept.
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.server_name = cluster.server_name
    if cluster.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.ca:
        # Without the comments of people, which ssl does not take.
        found = [part.decode("ascii") for part in _PEM.findall(cluster.ca)]
        if not found:
            raise ValueError("no certificate in certificate-authority")
        context.load_verify_locations(cadata="\n".join(found))
    else:
        context.load_default_certs()
    if certificate:
        # ssl reads them from files alone.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "login.pem"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(certificate + b"\n" + key)
            context.load_cert_chain(path, password=_no_password)
    return context


def _no_password() -> str:
    """Without this, OpenSSL would ask at the terminal."""
    raise ValueError("the client key is encrypted, which is not supported")


def _bearer(token: str) -> dict[str, str]:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AuthError(  # not by httpx, which would show it
            "The token contains characters that no token has",
            hint="Check the token in your kubeconfig, or log in again.",
        )
    return {"Authorization": f"Bearer {token}"}


def _read_token(path: str, former: str) -> str:
    """Of a file that somebody else renews, and may be about to."""
    try:
        found = Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        if former:
            return former
        told = getattr(error, "strerror", "not a text file")
        raise AuthError(
            f"Could not read the token in {path}: {told}",
            hint="Check tokenFile in your kubeconfig.",
        ) from None
    return found or former


def _ask(plugin: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Run the program that logs in: those of EKS, GKE and AKS are such."""
    version = str(plugin.get("apiVersion") or _VERSIONS[1])
    if version not in _VERSIONS:
        raise AuthError(
            f"exec logins of {version} are not supported",
            hint=f"Update your kubeconfig to {_VERSIONS[0]} with your provider's tool.",
        )
    command = [str(plugin["command"]), *(str(item) for item in plugin.get("args") or ())]
    if plugin.get("interactiveMode") == "Always":
        raise AuthError(
            f"{command[0]} logs in at a terminal, which is not supported",
            hint="Use a login that requires none, such as a service account's token.",
        )
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = _told_of(cluster)
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {str(item["name"]): str(item.get("value") or "") for item in plugin.get("env") or ()}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
    done = _run(command, environment, str(plugin.get("installHint") or ""))
    try:
        status = json.loads(done)["status"]
        if not status.get("token") and not status.get("clientCertificateData"):
            raise KeyError("token")
        return dict(status)
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not chained: what it printed may be half a token.
        raise AuthError(
            f"Could not log in: {command[0]} returned no credentials",
            hint="Log in with your provider's tool and try again.",
        ) from None


def _told_of(cluster: Cluster) -> dict[str, Any]:
    told = {
        "server": cluster.server,
        "tls-server-name": cluster.server_name,
        "insecure-skip-tls-verify": cluster.insecure,
        "certificate-authority-data": base64.b64encode(cluster.ca).decode(),
        "proxy-url": cluster.proxy,
        "config": cluster.exec_config,
    }
    return {key: value for key, value in told.items() if value}


def _run(command: list[str], environment: dict[str, str], install: str) -> str:
    """What a program prints. Its arguments may be secret, so no message has them."""
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PLUGIN_WITHIN,
            check=False,
        )
    except FileNotFoundError as error:
        hint = install.strip() or "Install it, or update your kubeconfig."
        raise AuthError(f"{command[0]}, required to log in, not found", hint=hint) from error
    except OSError as error:
        raise AuthError(
            f"Could not log in: could not run {command[0]}: {error.strerror}"
        ) from error
    except subprocess.TimeoutExpired:
        raise AuthError(
            f"Could not log in: {command[0]} did not end within {_PLUGIN_WITHIN:.0f} seconds",
            hint="Log in with your provider's tool and try again.",
        ) from None
    if done.returncode:
        told = " ".join(done.stderr.split())[-300:]
        raise AuthError(
            f"Could not log in: {command[0]} failed with exit code {done.returncode}"
            + (f": {told}" if told else ""),
            hint="Log in with your provider's tool and try again.",
        )
    return done.stdout


def _until(status: dict[str, Any]) -> float:
    """When the token has to be renewed, by this computer's clock."""
    text = str(status.get("expirationTimestamp") or "").strip()
    try:
        # Python 3.10 takes neither Z nor nine digits of a second.
        found = datetime.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00"))
    except ValueError:
        return float("inf")
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    left = found.timestamp() - time.time()
    return time.time() + max(left - _EARLY, left / 2)  # not at each call, if it is a short one
