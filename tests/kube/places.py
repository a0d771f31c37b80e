"""Where things are: what is built once and kept, and the one folder of the cluster that runs."""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["SOURCES", "building", "cache", "digest", "kubeconfig", "state"]

SOURCES = Path(__file__).parent


def cache() -> Path:
    """What outlives a cluster and the clone."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sojourn-tests" / "kube"


def state() -> Path:
    """All of a running cluster; there is one on a computer, as its network has fixed names."""
    return cache() / "run"


def kubeconfig() -> Path:
    return state() / "pki" / "admin.kubeconfig"


def digest(parts: Iterable[bytes]) -> str:
    """A short name for this content."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(hashlib.sha256(part).digest())
    return hashed.hexdigest()[:16]


@contextmanager
def building(target: Path) -> Iterator[Path]:
    """A folder to build in, which becomes `target` if all went well."""
    target.parent.mkdir(parents=True, exist_ok=True)
    folder = target.with_name(f"{target.name}.{uuid.uuid4().hex[:8]}.partial")
    folder.mkdir()
    try:
        yield folder
        if not target.exists():
            folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
