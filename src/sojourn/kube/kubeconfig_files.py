"""Where the configuration of a cluster may be; looked at without loading anything."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = [
    "CONTENTS",
    "CONTEXT",
    "NAMESPACE",
    "PATHS",
    "SERVICE_ACCOUNT",
    "configured",
    "default_file",
    "files",
    "in_cluster",
]

PATHS = "KUBECONFIG"
CONTENTS = ("KUBECONFIG_DATA", "KUBERNETES_CONFIGURATION")
CONTEXT = "SOJOURN_K8S_CONTEXT"
NAMESPACE = "SOJOURN_K8S_NAMESPACE"
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"


def configured() -> bool:
    """Whether there is any configuration."""
    return any(os.environ.get(name) for name in (PATHS, *CONTENTS)) or bool(files()) or in_cluster()


def in_cluster() -> bool:
    """Whether this is a pod with an account of its own."""
    return bool(os.environ.get(_IN_CLUSTER)) and (SERVICE_ACCOUNT / "token").is_file()


def default_file() -> Path | None:
    """Where kubectl looks. None: whoever runs this has no home."""
    try:
        return Path.home() / ".kube" / "config"
    except RuntimeError:
        return None


def files() -> list[Path]:
    """The files to read, in order; those of KUBECONFIG may be absent."""
    named = os.environ.get(PATHS, "")
    if named:
        parts = [part for part in named.split(os.pathsep) if part]
        return list(dict.fromkeys(Path(part).expanduser() for part in parts))
    default = default_file()
    try:
        return [default] if default and default.is_file() else []
    except OSError:  # not allowed to look: reading it says so
        return [default] if default else []
