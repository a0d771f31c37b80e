"""The task as a key of the Secret, which takes 1 MiB: a long one is packed."""

from __future__ import annotations

import zlib

from sojourn.core.errors import IntegrityError

__all__ = ["packed", "unpacked"]

_LONG = 256 << 10  # bytes
_LONGEST = 64 << 20  # bytes; whoever may write Secrets is no machine, but may be mistaken
_PACKED = b"\x78"  # how zlib begins; a task begins with a brace


def packed(task: bytes) -> bytes:
    """As it is kept."""
    return zlib.compress(task, 9) if len(task) > _LONG else task


def unpacked(kept: bytes) -> bytes:
    """As it was."""
    if not kept.startswith(_PACKED):
        return kept
    unpacker = zlib.decompressobj()
    task = unpacker.decompress(kept, _LONGEST)
    if not unpacker.eof:
        raise IntegrityError("The task in the Secret is damaged: too large, or truncated")
    return task
