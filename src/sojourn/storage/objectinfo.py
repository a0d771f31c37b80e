"""What a store tells of an object, and what may be put into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["MOST", "Buffer", "ObjectInfo"]

MOST = 64 << 20  # bytes of an object that is read as a whole, unless its reader says otherwise

Buffer = bytes | bytearray | memoryview


class ObjectInfo(NamedTuple):
    """One object in a listing; `modified` is by the store's own clock."""

    path: str
    size: int
    modified: datetime
