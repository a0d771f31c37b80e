"""What is built once and kept, for all clusters and clones of this computer."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["SOURCES", "building", "cache", "digest", "lock_file", "locked"]

SOURCES = Path(__file__).parent
# Looked up at once: tests give the laptop's side a home of its own.
_CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache() -> Path:
    """What outlives a cluster and the clone."""
    return _CACHES / "sojourn-tests" / "kube"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One at a time, of all processes."""
    with lock_file(name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lock_file(name: str) -> Path:
    folder = cache() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


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
