"""The task as a key of the Secret, which takes 1 MiB: a long one is packed."""

from __future__ import annotations

import zlib

__all__ = ["packed", "unpacked"]

_LONG = 256 << 10  # bytes
_PACKED = b"\x78"  # how zlib begins; a task begins with a brace


def packed(task: bytes) -> bytes:
    """As it is kept."""
    return zlib.compress(task, 9) if len(task) > _LONG else task


def unpacked(kept: bytes) -> bytes:
    """As it was."""
    return zlib.decompress(kept) if kept.startswith(_PACKED) else kept
