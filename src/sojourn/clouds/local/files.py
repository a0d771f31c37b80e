"""Small files that several processes read and write."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["is_locked", "locked", "read_rows", "try_lock", "write_whole"]


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once: a reader sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of JSON lines; absent: none. Torn lines do not count."""
    rows = []
    with suppress(FileNotFoundError):
        for line in path.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                rows.append(json.loads(line))
    return rows


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, waiting for it; it is free again when its holder ends, however it ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def try_lock(path: Path) -> int | None:
    """Take a lock for as long as the returned descriptor is open; None if somebody has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def is_locked(path: Path) -> bool:
    """Whether somebody holds a lock."""
    if not path.exists():
        return False
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False
