"""Credentials as the API server wants to see them, fresh whenever they are asked for."""

from __future__ import annotations

import base64
import json
import os
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
    from sojourn.clouds.k8s.kubeconfig import Cluster, Login, User

__all__ = ["Credentials"]

_READ_EVERY = 60.0  # seconds; a token in a file is renewed by whoever wrote it
_EARLY = 30.0  # seconds before its end that a token is renewed
_PLUGIN_WITHIN = 120.0  # seconds; somebody may have to log in in a browser
_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class Credentials:
    """The headers and the TLS context of one login. Constructors do no I/O."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0  # by time.time()
        self._certificate: tuple[bytes, bytes] = (login.user.certificate, login.user.key)

    def headers(self, *, renew: bool = False) -> dict[str, str]:
        """What a request carries; `renew`: the former was refused."""
        user = self._login.user
        if user.password:
            plain = ":".join(user.password).encode()
            return {"Authorization": f"Basic {base64.b64encode(plain).decode()}"}
        with self._lock:
            token = self._current(user, renew=renew)
        return {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def can_renew(self) -> bool:
        """Whether asking again may bring another token."""
        return bool(self._login.user.token_file or self._login.user.plugin)

    def _current(self, user: User, *, renew: bool) -> str:
        if user.token and not user.token_file:
            return user.token
        if time.time() < self._until and not renew:
            return self._token
        if user.token_file:
            self._token = _read_token(user.token_file)
            self._until = time.time() + _READ_EVERY
        elif user.plugin:
            self._ask(user.plugin)
        return self._token

    def _ask(self, plugin: dict[str, Any]) -> None:
        status = _ask(plugin, self._login.cluster)
        self._token = str(status.get("token") or "")
        self._until = _until(status)
        if status.get("clientCertificateData"):
            self._certificate = (
                str(status["clientCertificateData"]).encode(),
                str(status.get("clientKeyData") or "").encode(),
            )

    def tls(self) -> ssl.SSLContext | None:
        """None for a server without TLS."""
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


def _context(cluster: Cluster, certificate: bytes, key: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=cluster.ca.decode() if cluster.ca else None)
    if cluster.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        # ssl reads them from files alone.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "login.pem"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(certificate + b"\n" + key)
            context.load_cert_chain(path)
    return context


def _read_token(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise AuthError(f"Could not read the token: {error}") from error


def _ask(plugin: dict[str, Any], cluster: Cluster) -> dict[str, Any]:
    """Run the program that logs in: those of EKS, GKE and AKS are such."""
    version = str(plugin.get("apiVersion") or _VERSIONS[1])
    if version not in _VERSIONS:
        raise AuthError(
            f"exec logins of {version} are not supported",
            hint=f"Update your kubeconfig to {_VERSIONS[0]} with your provider's tool.",
        )
    command = [str(plugin["command"]), *(str(item) for item in plugin.get("args") or ())]
    spec: dict[str, Any] = {"interactive": False}
    if plugin.get("provideClusterInfo"):
        spec["cluster"] = {
            "server": cluster.server,
            "certificate-authority-data": base64.b64encode(cluster.ca).decode(),
        }
    asked = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    added = {str(item["name"]): str(item["value"]) for item in plugin.get("env") or ()}
    environment = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(asked)}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PLUGIN_WITHIN,
            check=False,
        )
    except FileNotFoundError as error:
        hint = str(plugin.get("installHint") or "Install it, or update your kubeconfig.")
        raise AuthError(f"{command[0]}, required to log in, not found", hint=hint) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AuthError(f"Could not log in: {error}") from error
    if done.returncode:
        told = " ".join(done.stderr.split())[-300:]
        raise AuthError(
            f"Could not log in: {command[0]} failed with exit code {done.returncode}: {told}",
            hint="Log in with your provider's tool and try again.",
        )
    try:
        return dict(json.loads(done.stdout)["status"])
    except (ValueError, KeyError, TypeError) as error:
        raise AuthError(f"Could not log in: {command[0]} returned no credentials") from error


def _until(status: dict[str, Any]) -> float:
    """When the token has to be renewed, by this computer's clock."""
    try:
        text = str(status["expirationTimestamp"]).replace("Z", "+00:00")
        found = datetime.fromisoformat(text)
    except (KeyError, ValueError):
        return float("inf")
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return found.timestamp() - _EARLY
