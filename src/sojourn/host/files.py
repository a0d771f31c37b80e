"""Small files that several processes read and write."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sojourn.core.untrusted import number, parsed
from sojourn.storage.files import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "locked",
    "read_held",
    "read_lock",
    "read_machines",
    "read_rows",
    "read_small",
    "try_lock",
    "write_lock",
    "write_whole",
]

# Whatever it is by now: a pipe must not make anybody wait.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST_LOCK = 4096  # bytes that a lock may say


def write_whole(path: Path, text: str, *, passing: bool = False) -> None:
    """Replace a file at once: a reader sees the old text or the new one, also after a power cut.

    `passing`: after one it does not matter, and nobody waits for the disk.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        with open(temporary, "w") as file:
            file.write(text)
            file.flush()
            if not passing:
                os.fsync(file.fileno())  # else the name may reach the disk before the text does
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of JSON lines; absent: none. Torn lines do not count."""
    rows: list[dict[str, str]] = []
    with suppress(FileNotFoundError):
        for line in path.read_text(errors="replace").splitlines():
            with suppress(ValueError):
                rows += _rows([parsed(line)])
    return rows


def read_machines(path: Path) -> list[dict[str, str]]:
    """The machines that a supervisor wrote down; absent or damaged: none."""
    try:
        rows = _rows(parsed(path.read_text()))
    except (FileNotFoundError, ValueError):
        return []
    return [
        row
        for row in rows
        if {"id", "pid", "started"} <= row.keys() and number(row["pid"]) is not None
    ]


def read_small(path: Path, most: int) -> bytes:
    """The bytes of a file in a store, of which anything may have been made by now.

    It is no file, or too large: raises ValueError.
    """
    descriptor = os.open(path, _READ)
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > most:
            raise ValueError(f"{path.name} is not a file, or too large")
        return read_whole(descriptor, info.st_size)
    finally:
        os.close(descriptor)


def _rows(data: object) -> list[dict[str, str]]:
    """Those that have texts alone; what else there may be was not written by us."""
    rows = data if isinstance(data, list) else []
    return [
        row
        for row in rows
        if isinstance(row, dict) and all(isinstance(value, str) for value in row.values())
    ]


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


def read_lock(path: Path) -> tuple[bool, str]:
    """Whether somebody holds a lock, and what it says; absent: nobody and nothing.

    What a free lock says is read while it is held: its last holder may have written just now.
    """
    try:
        if not path.exists():
            return False, ""
        descriptor = try_lock(path)
        if descriptor is None:
            return True, path.read_text(errors="replace")
    except FileNotFoundError:  # removed meanwhile
        return False, ""
    try:
        return False, read_held(descriptor)
    finally:
        os.close(descriptor)


def read_held(descriptor: int) -> str:
    """What a lock says that one holds."""
    return os.pread(descriptor, _LONGEST_LOCK, 0).decode(errors="replace")


def write_lock(descriptor: int, text: str) -> None:
    """Have a lock say something else. Written over what it said: a full disk has room for that."""
    data = text.encode()
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))
