"""Frames: what travels on the stream. Each has a checksum, and none is large.

kind 1 | flags 1 | id 4 | length 4 | CRC-32 of all this and the body 4 | body
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sojourn.storage.objectinfo import Buffer

__all__ = ["PIECE", "PREAMBLE", "BrokenFrame", "Frame", "Kind", "Parser", "encode"]

VERSION = 1
PREAMBLE = b"sojourn-store/%d\n" % VERSION  # what either side says first
PIECE = 128 << 10  # bytes of a body, at most
_HEAD = struct.Struct("!BBII")
_SUM = struct.Struct("!I")
_HEAD_SIZE = _HEAD.size + _SUM.size
_COMPRESSED = 1


class Kind:
    """What a frame is."""

    REQUEST = 1  # JSON: the call and its arguments
    DATA = 2  # a piece of a body
    BEGIN = 3  # JSON: the sizes of an answer's body
    DONE = 4  # JSON: the result
    FAILED = 5  # JSON: the error
    CANCEL = 6  # no more of this body
    ALIVE = 7  # nothing, now and then


_KINDS = range(Kind.REQUEST, Kind.ALIVE + 1)


class BrokenFrame(Exception):
    """What arrived is not what was sent."""


class Frame(NamedTuple):
    """One of them, as it was before compression."""

    kind: int
    id: int
    body: bytes


def encode(kind: int, id: int, body: Buffer = b"", *, packed: bytes | None = None) -> bytes:
    """The bytes of a frame; `packed` is its body compressed, if that pays."""
    sent = body if packed is None else packed
    head = _HEAD.pack(kind, 0 if packed is None else _COMPRESSED, id, len(sent))
    return b"".join((head, _SUM.pack(zlib.crc32(sent, zlib.crc32(head))), sent))


class Parser:
    """Frames out of whatever pieces the stream brings."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Those that are whole now; raises BrokenFrame."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= _HEAD_SIZE:
                kind, flags, id, length = _HEAD.unpack_from(buffer, start)  # noqa: A001
                if kind not in _KINDS or flags not in (0, _COMPRESSED) or length > PIECE:
                    raise BrokenFrame("a frame makes no sense")
                end = start + _HEAD_SIZE + length
                if len(buffer) < end:
                    return
                body = self._checked(start, end)
                start = end
                yield Frame(kind, id, _unpacked(body) if flags else body)
        finally:
            del buffer[:start]

    def _checked(self, start: int, end: int) -> bytes:
        with memoryview(self._buffer) as view:
            (expected,) = _SUM.unpack_from(view, start + _HEAD.size)
            body = bytes(view[start + _HEAD_SIZE : end])
            head = bytes(view[start : start + _HEAD.size])
        if zlib.crc32(body, zlib.crc32(head)) != expected:
            raise BrokenFrame("a frame is damaged")
        return body


def _unpacked(body: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(body, PIECE)
    except zlib.error as error:
        raise BrokenFrame("a frame cannot be decompressed") from error
    if not unpacker.eof or unpacker.unused_data:
        raise BrokenFrame("a frame is larger than allowed")
    return data
