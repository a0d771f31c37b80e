"""Frames: the same at the other end, or an error; never anything else."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sojourn.storage.served.frames import PIECE, BrokenFrame, Frame, Kind, Parser, encode

KINDS = st.integers(Kind.REQUEST, Kind.ALIVE)
IDS = st.integers(0, 2**32 - 1)
FRAMES = st.lists(st.tuples(KINDS, IDS, st.binary(max_size=300), st.booleans()), max_size=8)


def _sent(kind: int, id: int, body: bytes, packed: bool) -> bytes:
    return encode(kind, id, body, packed=zlib.compress(body, 1) if packed else None)


def _parsed(data: bytes, cuts: list[int]) -> list[Frame]:
    parser = Parser()
    found: list[Frame] = []
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        found += parser.feed(data[start:end])
    return found


@given(FRAMES, st.lists(st.integers(0, 10_000), max_size=12))
def test_frames_arrive_as_they_were_however_they_are_cut(
    frames: list[tuple[int, int, bytes, bool]], cuts: list[int]
) -> None:
    data = b"".join(_sent(*frame) for frame in frames)
    assert _parsed(data, cuts) == [Frame(*frame[:3]) for frame in frames]


@given(FRAMES.filter(bool), st.integers(0), st.integers(1, 255))
def test_a_changed_byte_is_noticed(
    frames: list[tuple[int, int, bytes, bool]], at: int, change: int
) -> None:
    data = bytearray(b"".join(_sent(*frame) for frame in frames))
    data[at % len(data)] ^= change
    before = [Frame(*frame[:3]) for frame in frames]
    parser = Parser()
    found = []
    try:
        for frame in parser.feed(bytes(data)):
            found.append(frame)
    except BrokenFrame:
        pass
    else:
        # A length that grew: the rest is still waited for.
        assert len(found) < len(before)
    assert found == before[: len(found)]


@given(st.binary(max_size=2000))
def test_noise_is_no_frame(data: bytes) -> None:
    try:
        found = list(Parser().feed(data))
    except BrokenFrame:
        return
    assert not found


def test_a_frame_does_not_grow_without_bounds() -> None:
    bomb = zlib.compress(bytes(100 << 20), 9)
    assert len(bomb) < PIECE
    with pytest.raises(BrokenFrame, match="larger"):
        list(Parser().feed(encode(Kind.DATA, 1, b"", packed=bomb)))
    with pytest.raises(BrokenFrame):
        list(Parser().feed(encode(Kind.DATA, 1, bytes(PIECE + 1))))


def test_the_largest_frame_fits_compressed_or_not() -> None:
    body = bytes(PIECE)
    for packed in (None, zlib.compress(body, 1)):
        assert list(Parser().feed(encode(Kind.DATA, 1, body, packed=packed))) == [
            Frame(Kind.DATA, 1, body)
        ]
