"""Kubeconfig files, read and merged as kubectl does."""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn.clouds.k8s import signs
from sojourn.core.errors import AuthError

__all__ = ["Cluster", "Login", "User", "load"]

_HINT = "Run `kubectl config view` to check your kubeconfig, and `sojourn doctor` for details."


@dataclass(frozen=True)
class Cluster:
    """Where the API server is, and how to know it."""

    server: str
    ca: bytes = b""  # PEM; none: the system's
    insecure: bool = False
    proxy: str = ""
    server_name: str = ""


@dataclass(frozen=True)
class User:
    """Who we are there."""

    token: str = field(default="", repr=False)
    token_file: str = ""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    password: tuple[str, str] | None = field(default=None, repr=False)
    plugin: dict[str, Any] | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Login:
    """One context: a cluster, a user and a namespace; `source` says where it was found."""

    cluster: Cluster
    user: User
    namespace: str
    context: str
    source: str


def load() -> Login:
    """The login that this computer's configuration asks for. None: raises AuthError."""
    for name in signs.CONTENTS:
        text = os.environ.get(name)
        if text:
            return _login([(_parsed(text, name), Path.cwd())], name)
    files = signs.files()
    if files:
        found = [(_read(path), path.parent) for path in files if path.is_file()]
        names = os.pathsep.join(str(path) for path in files)
        if not found:
            raise AuthError(f"{signs.PATHS} names no existing file: {names}", hint=_HINT)
        return _login(found, names)
    if signs.in_cluster():
        return _own_account()
    raise AuthError(
        "No kubeconfig found",
        hint=f"Set {signs.PATHS} to its path, or {signs.CONTENTS[0]} to its contents.",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return _parsed(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise AuthError(f"Could not read {path}: {error}", hint=_HINT) from error


def _parsed(text: str, source: str) -> dict[str, Any]:
    import yaml  # not free, and only needed here

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise AuthError(f"{source} is not valid YAML: {error}", hint=_HINT) from error
    if not isinstance(found, dict):
        raise AuthError(f"{source} is not a kubeconfig", hint=_HINT)
    return found


def _login(parts: list[tuple[dict[str, Any], Path]], source: str) -> Login:
    """Of several files, the first that names a thing counts."""
    context_name = os.environ.get(signs.CONTEXT) or next(
        (str(part["current-context"]) for part, _ in parts if part.get("current-context")), ""
    )
    if not context_name:
        raise AuthError(
            f"{source} has no current context",
            hint=f"Run `kubectl config use-context NAME`, or set {signs.CONTEXT}.",
        )
    context, _ = _named(parts, "contexts", "context", context_name, source)
    cluster, near = _named(parts, "clusters", "cluster", str(context.get("cluster")), source)
    user: dict[str, Any] = {}
    beside = near
    if context.get("user"):
        user, beside = _named(parts, "users", "user", str(context["user"]), source)
    return Login(
        _cluster(cluster, near, source),
        _user(user, beside, source),
        os.environ.get(signs.NAMESPACE) or str(context.get("namespace") or "default"),
        context_name,
        source,
    )


def _named(
    parts: list[tuple[dict[str, Any], Path]], plural: str, kind: str, name: str, source: str
) -> tuple[dict[str, Any], Path]:
    for part, folder in parts:
        for item in part.get(plural) or ():
            if item.get("name") == name:
                return item.get(kind) or {}, folder
    raise AuthError(f"{kind} {name!r} not found in {source}", hint=_HINT)


def _cluster(found: dict[str, Any], folder: Path, source: str) -> Cluster:
    if not found.get("server"):
        raise AuthError(f"The cluster has no server in {source}", hint=_HINT)
    return Cluster(
        server=str(found["server"]).rstrip("/"),
        ca=_content(found, "certificate-authority", folder),
        insecure=bool(found.get("insecure-skip-tls-verify")),
        proxy=str(found.get("proxy-url") or ""),
        server_name=str(found.get("tls-server-name") or ""),
    )


def _user(found: dict[str, Any], folder: Path, source: str) -> User:
    if found.get("auth-provider"):
        raise AuthError(
            f"{source} logs in by auth-provider, which Kubernetes no longer supports",
            hint="Update your kubeconfig with your provider's tool; current ones use exec.",
        )
    plugin = found.get("exec")
    if plugin and not plugin.get("command"):
        raise AuthError(f"The exec login in {source} has no command", hint=_HINT)
    if plugin and os.sep in str(plugin["command"]):
        plugin = {**plugin, "command": str(folder / str(plugin["command"]))}
    token_file = str(found.get("tokenFile") or "")
    return User(
        token=str(found.get("token") or ""),
        token_file=str(folder / token_file) if token_file else "",
        certificate=_content(found, "client-certificate", folder),
        key=_content(found, "client-key", folder),
        password=(str(found["username"]), str(found.get("password") or ""))
        if found.get("username")
        else None,
        plugin=plugin,
    )


def _content(found: dict[str, Any], name: str, folder: Path) -> bytes:
    """Given in place, or as a path relative to the file."""
    if found.get(f"{name}-data"):
        try:
            return base64.b64decode(str(found[f"{name}-data"]), validate=True)
        except binascii.Error as error:
            raise AuthError(f"{name}-data is not valid base64", hint=_HINT) from error
    if not found.get(name):
        return b""
    path = folder / str(found[name])
    try:
        return path.read_bytes()
    except OSError as error:
        raise AuthError(f"Could not read {name}: {error}", hint=_HINT) from error


def _own_account() -> Login:
    """Of the pod that this runs in."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    folder = signs.SERVICE_ACCOUNT
    return Login(
        Cluster(f"https://{f'[{host}]' if ':' in host else host}:{port}", _bytes(folder, "ca.crt")),
        User(token_file=str(folder / "token")),
        os.environ.get(signs.NAMESPACE) or _bytes(folder, "namespace").decode().strip(),
        "in-cluster",
        "the service account of this pod",
    )


def _bytes(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise AuthError(f"Could not read {folder / name}: {error}") from error
