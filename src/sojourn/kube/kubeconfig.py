"""Kubeconfig files, read and merged as kubectl does."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sojourn.core.errors import AuthError, SojournError
from sojourn.core.proxies import proxy_for
from sojourn.kube import kubeconfig_files
from sojourn.kube.kubeconfig_files import CONTENTS, CONTEXT, NAMESPACE, PATHS

__all__ = ["Asked", "Cluster", "Login", "User", "load"]

_EXEC_CONFIG = "client.authentication.k8s.io/exec"  # an extension of clusters
_OURS = "sojourn"  # the namespace of docs/kubernetes.md
_HINT = "Run `kubectl config view` to check your kubeconfig, and `sojourn doctor` for details."


@dataclass(frozen=True)
class Cluster:
    """Where the API server is, and how to know it.

    `proxy`: empty if none leads there. `server_name`: the one in its certificate, if another.
    `exec_config`: what programs that log in are told of it.
    """

    server: str
    ca: bytes = field(default=b"", repr=False)  # PEM; none: the system's
    insecure: bool = False
    proxy: str = field(default="", repr=False)  # may have a password in it
    server_name: str = ""
    exec_config: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class User:
    """Who we are there; `impersonated` are the headers that ask to be somebody else."""

    token: str = field(default="", repr=False)
    token_file: str = ""
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    password: tuple[str, str] | None = field(default=None, repr=False)
    plugin: dict[str, Any] | None = field(default=None, repr=False)
    impersonated: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Login:
    """One context: a cluster, a user and a namespace; `source` says where it was found."""

    cluster: Cluster
    user: User
    namespace: str
    context: str
    source: str


@dataclass(frozen=True)
class Asked:
    """What is asked for by name; all that is empty is what this computer's configuration says."""

    context: str = ""
    namespace: str = ""
    file: str = ""

    def login(self) -> Login:
        """The login. There is none: raises AuthError."""
        found = self._found()
        return replace(found, namespace=self._namespace or found.namespace)

    def namespace_here(self) -> str:
        """The namespace that tasks would be in; without a cluster, one of our own name."""
        try:
            return self.login().namespace
        except SojournError:
            return self._namespace or _OURS

    @property
    def _namespace(self) -> str:
        return self.namespace or os.environ.get(NAMESPACE, "")

    def _found(self) -> Login:
        if self.file:
            path = Path(self.file)
            return _login([(_read(path), path.parent)], self.file, self.context)
        return _configured(self.context)


def load() -> Login:
    """The login that this computer's configuration asks for. None: raises AuthError."""
    return Asked().login()


def _configured(asked: str) -> Login:
    context = asked or os.environ.get(CONTEXT, "")
    for name in CONTENTS:
        text = os.environ.get(name)
        if text:
            return _login([(_parsed(text, name), Path.cwd())], name, context)
    files = kubeconfig_files.files()
    if files:
        found = [(_read(path), path.parent) for path in files if _exists(path)]
        names = os.pathsep.join(str(path) for path in files)
        if not found:
            raise AuthError(f"{PATHS} names no existing file: {names}", hint=_HINT)
        return _login(found, names, context)
    if kubeconfig_files.in_cluster() and not asked:
        return _own_account()
    raise AuthError(
        "No kubeconfig found",
        hint=f"Set {PATHS} to its path, or {CONTENTS[0]} to its contents.",
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return True  # not allowed to look: reading it says so


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise AuthError(f"Could not read {path}: {error.strerror}", hint=_HINT) from error
    except UnicodeDecodeError:
        raise AuthError(f"{path} is not a text file", hint=_HINT) from None
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> dict[str, Any]:
    import yaml  # not free, and only needed here

    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Its own words would show what is written there, and not chained: that may be a secret.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise AuthError(f"{source} is not valid YAML{where}", hint=_HINT) from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise AuthError(f"{source} is not a kubeconfig", hint=_HINT)
    return found


def _login(parts: list[tuple[dict[str, Any], Path]], source: str, context_name: str) -> Login:
    """Of several files, the first that names a thing counts."""
    context_name = context_name or next(
        (str(part["current-context"]) for part, _ in parts if part.get("current-context")), ""
    )
    if not context_name:
        raise AuthError(
            f"{source} has no current context",
            hint=f"Run `kubectl config use-context NAME`, or set {CONTEXT}.",
        )
    context, _ = _named(parts, "contexts", "context", context_name, source)
    if not context.get("cluster"):
        raise AuthError(f"Context {context_name!r} in {source} has no cluster", hint=_HINT)
    cluster, near = _named(parts, "clusters", "cluster", str(context["cluster"]), source)
    user: dict[str, Any] = {}
    beside = near
    if context.get("user"):
        user, beside = _named(parts, "users", "user", str(context["user"]), source)
    return Login(
        _cluster(cluster, near, source),
        _user(user, beside, source),
        str(context.get("namespace") or "default"),
        context_name,
        source,
    )


def _named(
    parts: list[tuple[dict[str, Any], Path]], plural: str, kind: str, name: str, source: str
) -> tuple[dict[str, Any], Path]:
    known = []
    for part, folder in parts:
        for item in _dictionaries(part.get(plural) or (), plural, source):
            if str(item.get("name")) == name:
                return _dictionaries([item.get(kind) or {}], f"{kind} {name}", source)[0], folder
            known.append(str(item.get("name")))
    hint = f"Set {CONTEXT} to one of: {', '.join(known)}." if kind == "context" else _HINT
    raise AuthError(f"{kind.capitalize()} {name!r} not found in {source}", hint=hint)


def _dictionaries(items: Any, what: str, source: str) -> list[dict[str, Any]]:
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, dict) for item in items):
        raise AuthError(f"Invalid {what} in {source}", hint=_HINT)
    return list(items)


def _cluster(found: dict[str, Any], folder: Path, source: str) -> Cluster:
    server = str(found.get("server") or "").rstrip("/")
    if not server:
        raise AuthError(f"The cluster has no server in {source}", hint=_HINT)
    if "://" not in server:
        server = f"https://{server}"
    try:
        parts = urlsplit(server)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise AuthError(f"Invalid server {server!r} in {source}", hint=_HINT)
    return Cluster(
        server=server,
        ca=_content(found, "certificate-authority", folder, source),
        insecure=bool(found.get("insecure-skip-tls-verify")),
        proxy=str(found.get("proxy-url") or "") or proxy_for(server, os.environ),
        server_name=str(found.get("tls-server-name") or ""),
        exec_config=_extension(found, _EXEC_CONFIG),
    )


def _extension(found: dict[str, Any], name: str) -> Any:
    extensions = found.get("extensions")
    for item in extensions if isinstance(extensions, list) else ():
        if isinstance(item, dict) and item.get("name") == name:
            return item.get("extension")
    return None


def _user(found: dict[str, Any], folder: Path, source: str) -> User:
    plugin = found.get("exec")
    token_file = str(found.get("tokenFile") or "")
    known = plugin or token_file or found.get("token") or found.get("client-certificate-data")
    if found.get("auth-provider") and not known:
        raise AuthError(
            f"{source} logs in by auth-provider, which Kubernetes no longer supports",
            hint="Update your kubeconfig with your provider's tool; current ones use exec.",
        )
    certificate = _content(found, "client-certificate", folder, source)
    key = _content(found, "client-key", folder, source)
    if bool(certificate) != bool(key):
        missing = "client-key" if certificate else "client-certificate"
        raise AuthError(f"The user in {source} has no {missing}", hint=_HINT)
    return User(
        token=str(found.get("token") or "").strip(),
        token_file=str(folder / token_file) if token_file else "",
        certificate=certificate,
        key=key,
        password=(str(found["username"]), str(found.get("password") or ""))
        if found.get("username")
        else None,
        plugin=_plugin(plugin, folder, source) if plugin else None,
        impersonated=_impersonated(found, source),
    )


def _plugin(plugin: Any, folder: Path, source: str) -> dict[str, Any]:
    if not isinstance(plugin, dict) or not plugin.get("command"):
        raise AuthError(f"The exec login in {source} has no command", hint=_HINT)
    for item in _dictionaries(plugin.get("env") or (), "env of the exec login", source):
        if not item.get("name"):
            raise AuthError(f"Invalid env of the exec login in {source}", hint=_HINT)
    if not isinstance(plugin.get("args") or [], list):
        raise AuthError(f"Invalid args of the exec login in {source}", hint=_HINT)
    if os.sep in str(plugin["command"]):
        return {**plugin, "command": str(folder / str(plugin["command"]))}
    return dict(plugin)


def _impersonated(found: dict[str, Any], source: str) -> dict[str, str]:
    """What `as` and its companions ask for; to ignore them would give more rights than meant."""
    groups = found.get("as-groups") or []
    extra = found.get("as-user-extra") or {}
    if not isinstance(extra, dict) or not isinstance(groups, list):
        raise AuthError(f"Invalid as-groups or as-user-extra in {source}", hint=_HINT)
    many = {"Group": groups, **{f"Extra-{key}": values for key, values in extra.items()}}
    headers = {"User": [found.get("as")], "Uid": [found.get("as-uid")], **many}
    asked = {}
    for name, values in headers.items():
        given = [
            str(value) for value in (values if isinstance(values, list) else [values]) if value
        ]
        if len(given) > 1:
            raise AuthError(
                f"The user in {source} impersonates several groups, which is not supported",
                hint=f"Set {CONTEXT} to a context with at most one.",
            )
        asked.update({f"Impersonate-{name}": value for value in given})
    return asked


def _content(found: dict[str, Any], name: str, folder: Path, source: str) -> bytes:
    """Given in place, or as a path relative to the file."""
    if found.get(f"{name}-data"):
        text = "".join(str(found[f"{name}-data"]).split())
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:  # binascii.Error is one
            raise AuthError(f"{name}-data in {source} is not valid base64", hint=_HINT) from None
    if not found.get(name):
        return b""
    path = folder / str(found[name])
    try:
        return path.read_bytes()
    except OSError as error:
        raise AuthError(
            f"Could not read {name} {path}: {error.strerror} (from {source})", hint=_HINT
        ) from error


def _own_account() -> Login:
    """Of the pod that this runs in."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = os.environ.get("KUBERNETES_SERVICE_PORT") or "443"
    folder = kubeconfig_files.SERVICE_ACCOUNT
    namespace = folder / "namespace"
    own = namespace.read_text().strip() if namespace.is_file() else ""
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Login(
        Cluster(server, _bytes(folder / "ca.crt"), proxy=proxy_for(server, os.environ)),
        User(token_file=str(folder / "token")),
        own or "default",
        "in-cluster",
        "the service account of this pod",
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise AuthError(
            f"Could not read {path}: {error.strerror}", hint="Check the pod's service account."
        ) from error
