"""The end of a log, without its beginning."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sojourn.core.errors import Transient
from sojourn.core.events import LogLine
from sojourn.core.logpart import LogPart
from sojourn.storage import layout
from sojourn.storage.logs import Cursor
from sojourn.storage.logtail import read_part
from sojourn.storage.store import Store
from tests.support.faults import WatchedStore, memory_store


def _time(second: int) -> str:
    return f"2026-01-31T12:{second // 60:02}:{second % 60:02}.000000Z"


def _segment(store: Store, rank: int, attempt: int, number: int, lines: Sequence[str]) -> None:
    """A segment; each line begins with its second, and one that ends with `>` has no end yet."""
    records = []
    for line in lines:
        second, text = line.split(" ", 1)
        kind, text = (">", text[:-1]) if text.endswith(">") else ("|", text)
        records.append(f"{_time(int(second))}{kind}{text}\n")
    store.put(layout.segment_path(rank, attempt, number), "".join(records).encode())


def _texts(store: Store, ranks: int = 1, cursor: Cursor | None = None, **part: object) -> list[str]:
    meant = LogPart(**part)  # type: ignore[arg-type]
    return [line.text for line in read_part(store, range(ranks), cursor or Cursor(), meant)]


@pytest.fixture
def store() -> WatchedStore:
    """Two ranks; rank 0 has two attempts, and many segments."""
    made = WatchedStore(memory_store())
    for number in range(1, 9):
        _segment(made, 0, 1, number, [f"{number} a{number}", f"{number} b{number}"])
    _segment(made, 0, 2, 1, ["20 c"])
    _segment(made, 1, 1, 1, ["2 x", "19 y", "21 z"])
    return made


def test_the_last_lines_of_all_ranks(store: WatchedStore) -> None:
    assert _texts(store, ranks=2, tail=3) == ["y", "c", "z"]
    assert _texts(store, ranks=2, tail=5) == ["a8", "b8", "y", "c", "z"]
    assert _texts(store, ranks=2, tail=0) == []
    assert len(_texts(store, ranks=2, tail=1000)) == 20


def test_no_more_is_read_than_it_takes(store: WatchedStore) -> None:
    assert _texts(store, tail=2) == ["b8", "c"]
    assert len(store.got_paths) <= 3
    store.got_paths.clear()
    assert _texts(store, attempt=2, tail=5) == ["c"]
    assert store.got_paths == [layout.segment_path(0, 2, 1)]


def test_of_one_rank_or_attempt(store: WatchedStore) -> None:
    assert _texts(store, ranks=2, rank=1) == ["x", "y", "z"]
    assert _texts(store, ranks=2, rank=1, tail=1) == ["z"]
    assert _texts(store, ranks=2, rank=0, attempt=1, tail=1) == ["b8"]
    assert _texts(store, ranks=2, attempt=2) == ["c"]
    assert _texts(store, ranks=2, attempt=1, since=_time(8)) == ["a8", "b8", "y", "z"]


def test_since_a_time(store: WatchedStore) -> None:
    assert _texts(store, ranks=2, since=_time(19)) == ["y", "c", "z"]
    assert _texts(store, since=_time(8)) == ["a8", "b8", "c"]
    assert _texts(store, since=_time(8), tail=2) == ["b8", "c"]
    assert _texts(store, since=_time(20), tail=9) == ["c"]
    assert _texts(store, since=_time(60)) == []
    assert len(_texts(store, since=_time(0))) == 17
    store.got_paths.clear()
    assert _texts(store, since=_time(20)) == ["c"]
    assert len(store.got_paths) < 9


def test_the_pieces_of_a_line_count_once() -> None:
    store = memory_store()
    _segment(store, 0, 1, 1, ["1 one", "2 be>"])
    _segment(store, 0, 1, 2, ["3 gin>"])
    _segment(store, 0, 1, 3, ["4 ning", "5 half>"])
    assert _texts(store, tail=1) == ["half"]
    assert _texts(store, tail=2) == ["be", "gin", "ning", "half"]
    assert _texts(store, tail=3) == ["one", "be", "gin", "ning", "half"]


@settings(max_examples=100)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=4), max_size=6
    ),
    st.integers(0, 8),
)
def test_the_tail_is_the_end_of_the_whole(
    segments: list[list[tuple[int, bool]]], count: int
) -> None:
    """Whatever the segments, the tail is what the whole log ends with."""
    store = memory_store()
    second = 0
    for number, pieces in enumerate(segments, 1):
        lines = []
        for step, partial in pieces:
            second += step
            lines.append(f"{second} {second}{'>' if partial else ''}")
        _segment(store, 0, 1, number, lines)
    whole = _whole_lines(read_part(store, range(1), Cursor(), LogPart()))
    tail = _whole_lines(read_part(store, range(1), Cursor(), LogPart(tail=count)))
    assert tail == (whole[-count:] if count else [])


def _whole_lines(pieces: object) -> list[str]:
    lines, start = [], ""
    for piece in pieces:  # type: ignore[attr-defined]
        assert isinstance(piece, LogLine)
        start += piece.text + "+"
        if not piece.partial:
            lines.append(start)
            start = ""
    return [*lines, start] if start else lines


def test_a_follower_goes_on_after_the_tail(store: WatchedStore) -> None:
    cursor = Cursor()
    assert _texts(store, 2, cursor, tail=1) == ["z"]
    assert _texts(store, 2, cursor) == []
    _segment(store, 0, 2, 2, ["30 new"])
    assert _texts(store, 2, cursor) == ["new"]


def test_whoever_tries_again_gets_the_tail_again(
    store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(path: str, *, most: int = 0) -> memoryview:
        raise Transient("away")

    cursor = Cursor()
    with monkeypatch.context() as patch:
        patch.setattr(store, "get", away)
        with pytest.raises(Transient):
            _texts(store, 2, cursor, tail=1)
    assert _texts(store, 2, cursor, tail=1) == ["z"]


def test_a_line_without_an_end_in_sight_is_cut_and_says_so() -> None:
    store = WatchedStore(memory_store())
    piece = "x" * 60_000
    for number in range(1, 9):
        _segment(store, 0, 1, number, [f"{number} {piece}>"] * 10)
    _segment(store, 0, 1, 9, ["9 the end"])
    [head, *rest] = _texts(store, tail=1)
    assert head.startswith("[truncated: only the last 1 MiB of this line] xxx")
    assert rest[-1] == "the end"
    assert len(head) + sum(map(len, rest)) < 1_100_000
    assert len(store.got_paths) == 3  # of nine


def test_what_comes_before_a_long_line_is_found() -> None:
    store = WatchedStore(memory_store())
    piece = "x" * 60_000
    _segment(store, 0, 1, 1, ["1 first", "1 second"])
    for number in range(2, 9):
        _segment(store, 0, 1, number, [f"{number} {piece}>"] * 10)
    found = _texts(store, tail=2)
    assert found[0] == "second"
    assert found[1].startswith("[truncated:")
    assert len("".join(found)) < 1_100_000


def test_it_is_not_looked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sojourn.storage.logtail._SKIPPED", 100_000)
    store = WatchedStore(memory_store())
    for number in range(1, 9):
        _segment(store, 0, 1, number, [f"{number} {'x' * 60_000}>"] * 10)
    assert _texts(store, tail=2)[0].startswith("[truncated:")
    assert len(store.got_paths) == 2  # of eight


def test_ends_of_lines_without_a_time_are_no_lines() -> None:
    store = memory_store()
    store.put(layout.segment_path(0, 1, 1), b"\n" * (20 << 20) + f"{_time(1)}|x\n".encode())
    assert _texts(store) == _texts(store, tail=5) == ["x"]


def test_a_segment_of_one_piece_or_of_empty_lines_takes_little_memory() -> None:
    store = memory_store()
    for data in (b"\n" * (20 << 20), f"{_time(1)}>{'x' * (20 << 20)}\n".encode()):
        store.put(layout.segment_path(0, 1, 1), data)
        tracemalloc.start()
        try:
            assert sum(map(len, _texts(store, tail=1))) < 1_100_000
            assert tracemalloc.get_traced_memory()[1] < 100 << 20
        finally:
            tracemalloc.stop()
