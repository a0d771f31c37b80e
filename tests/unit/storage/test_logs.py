from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sojourn.core.errors import Transient
from sojourn.core.events import LogLine
from sojourn.storage import layout, logs
from sojourn.storage.logs import Cursor, LogWriter, read_logs
from sojourn.storage.logtail import read_last
from sojourn.storage.store import Store
from tests.support.faults import Fault, FaultyStore, WatchedStore, memory_store

PUTS = frozenset({"put"})
quick = settings(max_examples=150)


@pytest.fixture(autouse=True)
def nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unfinished lines are written at once; the tests at the end are about waiting."""
    monkeypatch.setattr(logs, "_HOLD", 0.0)


def read(store: Store, cursor: Cursor | None = None, ranks: int = 1) -> list[LogLine]:
    return list(read_logs(store, range(ranks), cursor or Cursor()))


def text(lines: Sequence[LogLine]) -> str:
    return "".join(line.text + ("" if line.partial else "\n") for line in lines)


def raw(store: Store, rank: int = 0) -> bytes:
    """The bytes that the script printed, put together from the segments."""
    found = b""
    for item in store.list(layout.logs_prefix(rank)):
        for record in bytes(store.get(item.path)).split(b"\n")[:-1]:
            assert record[27:28] in b"|>"
            found += record[28:] + (b"\n" if record[27:28] == b"|" else b"")
    return found


def flush_all(writer: LogWriter) -> None:
    for _ in range(50):
        try:
            writer.flush(last=True)
        except Transient:
            continue
        return
    pytest.fail("the store never recovered")


@quick
@given(st.lists(st.tuples(st.binary(max_size=40), st.booleans())))
@example([(b"\xff", True)])
@example([(b"a\xe2\x82", True), (b"\xac\n", False)])
@example([(b"\xf0\x9f", True), (b"\x98", True), (b"\x80", True)])
def test_bytes_come_back_in_whatever_pieces_they_were_printed(
    pieces: list[tuple[bytes, bool]],
) -> None:
    store = WatchedStore(memory_store())
    writer = LogWriter(store, 0, 1)
    for data, flush in pieces:
        writer.append(data)
        if flush:
            writer.flush()
    flush_all(writer)
    assert raw(store) == b"".join(data for data, _ in pieces)
    assert not writer.flush(last=True)


@quick
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.data())
def test_characters_are_not_torn_wherever_they_are_cut(printed: str, data: st.DataObject) -> None:
    store = memory_store()
    writer = LogWriter(store, 0, 1)
    rest = printed.encode()
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        writer.append(rest[:size])
        if data.draw(st.booleans()):
            writer.flush()
        rest = rest[size:]
    flush_all(writer)
    assert text(read(store)) == printed


@pytest.mark.parametrize("character", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("more", [-1, 0, 1, 2, 3, 200_000])
@pytest.mark.parametrize("end", ["", "\n"])
def test_long_lines_are_cut_between_characters(character: str, more: int, end: str) -> None:
    size = logs._LINE // len(character.encode()) + more
    printed = "a" + character * size + end
    store = memory_store()
    writer = LogWriter(store, 0, 1)
    for start in range(0, len(printed), 10_000):
        writer.append(printed[start : start + 10_000].encode())
    writer.flush()
    lines = read(store)
    assert text(lines) == printed
    assert all(len(line.text.encode()) <= logs._LINE for line in lines)


def test_binary_junk_comes_back(store: WatchedStore) -> None:
    junk = os.urandom(300_000)
    writer = LogWriter(store, 0, 1)
    for start in range(0, len(junk), 777):
        writer.append(junk[start : start + 777])
        if start % 5 == 0:
            writer.flush()
    flush_all(writer)
    assert raw(store) == junk
    assert read(store)


@pytest.fixture
def store() -> WatchedStore:
    return WatchedStore(memory_store())


def test_lines_have_rank_attempt_and_time(store: WatchedStore) -> None:
    writer = LogWriter(store, 3, 7)
    writer.append(b"one\ntw")
    writer.flush()
    writer.append(b"o\n")
    writer.flush()
    one, tw, o = read(store, ranks=4)
    assert (one.rank, one.attempt, one.text, one.partial) == (3, 7, "one", False)
    assert (tw.text, tw.partial, o.text, o.partial) == ("tw", True, "o", False)
    assert one.time <= tw.time <= o.time
    assert one.time[10] == "T"
    assert one.time.endswith("Z")
    assert writer.segments == 2


def test_nothing_printed_writes_nothing(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    assert not writer.flush()
    writer.append(b"")
    assert not writer.flush()
    assert store.calls == []


def test_text_that_looks_like_a_record_is_text(store: WatchedStore) -> None:
    printed = "2026-01-31T12:34:56.123456Z|fake\n|\n>\n\n\r\n"
    writer = LogWriter(store, 0, 1)
    writer.append(printed.encode())
    writer.flush()
    assert text(read(store)) == printed


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_a_failed_flush_neither_loses_nor_doubles_nor_rewrites(fault: Fault) -> None:
    store = memory_store()
    for at in range(6):
        faulty = FaultyStore(store, fault, at, kinds=PUTS)
        writer = LogWriter(faulty, at, 1)
        printed = b""
        for number in range(6):
            data = b"line %d\nand ha" % number
            printed += data
            writer.append(data)
            try:
                writer.flush()
            except Transient:
                # A reader may see what was written although the writer was told otherwise.
                assert printed.startswith(raw(store, at))
        flush_all(writer)
        assert faulty.struck
        assert faulty.violations == []
        assert raw(store, at) == printed
        assert writer.segments == len(store.list(layout.logs_prefix(at)))


def test_one_flush_after_a_failed_one_writes_all_that_was_printed_since() -> None:
    store = memory_store()
    writer = LogWriter(FaultyStore(store, Fault.BEFORE, 0, kinds=PUTS), 0, 1)
    writer.append(b"before\n")
    with pytest.raises(Transient):
        writer.flush()
    writer.append(b"after\n")
    assert writer.flush()
    assert raw(store) == b"before\nafter\n"


def test_printing_and_flushing_side_by_side_doubles_nothing(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    stop = threading.Event()

    def flush() -> None:
        while not stop.is_set():
            writer.flush()

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for thread in threads:
        thread.start()
    printed = b""
    give_up = time.monotonic() + 1.5
    number = 0
    while time.monotonic() < give_up:
        data = b"%d " % number if number % 7 else b"\n"
        number += 1
        printed += data
        writer.append(data)
    stop.set()
    for thread in threads:
        thread.join()
    flush_all(writer)
    assert raw(store) == printed
    assert writer.segments > 10


def test_a_script_that_prints_faster_than_the_store_writes_waits(
    store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_BUFFER", 1000)
    writer = LogWriter(store, 0, 1)
    done = threading.Event()

    def script() -> None:
        for _ in range(30):
            writer.append(b"x" * 99 + b"\n")
        done.set()

    thread = threading.Thread(target=script)
    thread.start()
    assert not done.wait(0.2)
    give_up = time.monotonic() + 10
    while not done.is_set() and time.monotonic() < give_up:
        writer.flush()
    thread.join()
    flush_all(writer)
    assert raw(store) == (b"x" * 99 + b"\n") * 30


def test_wait_returns_at_once_when_a_segment_is_full(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    writer.append(b"x\n")
    start = time.monotonic()
    writer.wait(0.05)
    assert time.monotonic() - start >= 0.05
    threading.Timer(0.1, writer.append, [b"y\n" * (1 << 16)]).start()
    start = time.monotonic()
    writer.wait(20)
    assert time.monotonic() - start < 10


def test_a_cursor_goes_on_where_it_was(store: WatchedStore) -> None:
    cursor = Cursor()
    writers = [LogWriter(store, rank, 1) for rank in range(2)]
    seen: list[LogLine] = []
    for number in range(12):
        writer = writers[number % 2]
        writer.append(b"%d\n" % number)
        writer.flush()
        seen += read(store, cursor, ranks=2)
        assert read(store, cursor, ranks=2) == []
    assert [line.text for line in seen if line.rank == 0] == ["0", "2", "4", "6", "8", "10"]
    assert [line.text for line in seen if line.rank == 1] == ["1", "3", "5", "7", "9", "11"]


def test_a_cursor_goes_on_to_the_next_attempt(store: WatchedStore) -> None:
    cursor = Cursor()
    first = LogWriter(store, 0, 9)
    first.append(b"one\n")
    first.flush()
    assert text(read(store, cursor)) == "one\n"
    second = LogWriter(store, 0, 10)
    second.append(b"two\n")
    second.flush()
    lines = read(store, cursor)
    assert [(line.attempt, line.text) for line in lines] == [(10, "two")]


def test_a_reader_follows_a_writer_at_work(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    total = 300

    def script() -> None:
        for number in range(total):
            writer.append(f"zeile {number} ü\n".encode()[: 7 + number % 5])
            writer.append(f"zeile {number} ü\n".encode()[7 + number % 5 :])
            if number % 3 == 0:
                writer.flush()
        writer.flush()

    thread = threading.Thread(target=script)
    thread.start()
    cursor = Cursor()
    seen: list[LogLine] = []
    give_up = time.monotonic() + 20
    while text(seen).count("\n") < total and time.monotonic() < give_up:
        seen += read(store, cursor)
    thread.join()
    assert text(seen) == "".join(f"zeile {number} ü\n" for number in range(total))


def test_a_log_that_is_being_deleted_ends(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    for number in range(3):
        writer.append(b"%d\n" % number)
        writer.flush()
    lines = read_logs(store, range(1), Cursor())
    assert next(lines).text == "0"
    store.delete([item.path for item in store.list("logs")])
    assert list(lines) == []


def test_lines_that_were_not_all_taken_come_again(store: WatchedStore) -> None:
    writer = LogWriter(store, 0, 1)
    writer.append(b"one\ntwo\n")
    writer.flush()
    cursor = Cursor()
    assert next(read_logs(store, range(1), cursor)).text == "one"
    assert text(read(store, cursor)) == "one\ntwo\n"


def test_a_line_that_is_printed_in_pieces_is_written_whole(
    store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_HOLD", 60.0)
    log = LogWriter(store, 0, 1)
    log.append(b"whole\nstep ")
    assert log.flush()
    log.append(b"17")
    assert not log.flush()
    log.append(b"\n")
    assert log.flush()
    read = list(read_logs(store, range(1), Cursor()))
    assert [(line.text, line.partial) for line in read] == [("whole", False), ("step 17", False)]


def test_an_unfinished_line_is_written_after_a_while_and_at_the_end(
    store: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_HOLD", 0.05)
    log = LogWriter(store, 0, 1)
    log.append(b"password: ")
    assert not log.flush()
    log.wait(10, eager=True)
    assert log.flush()
    log.append(b"no end")
    assert log.flush(last=True)
    read = list(read_logs(store, range(1), Cursor()))
    assert [(line.text, line.partial) for line in read] == [("password: ", True), ("no end", True)]


def test_ranks_are_merged_by_time(store: WatchedStore) -> None:
    writers = [LogWriter(store, rank, 1) for rank in range(3)]
    for number in range(12):
        writers[number * 7 % 3].append(b"%d\n" % number)
    for log in writers:
        log.flush()
    read = list(read_logs(store, range(3), Cursor()))
    assert [line.text for line in read] == [str(number) for number in range(12)]


def test_what_is_no_segment_of_ours_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine can write anything there, and what follows it is still read."""
    monkeypatch.setattr(logs, "_LARGEST", 200)
    store = memory_store()
    for name in ("0000", "000000/junk", "junk", "000001/00000000/deep", "000001/999"):
        store.put(f"{layout.logs_prefix(0)}/{name}", b"junk\n")
    store.put(layout.segment_path(0, 1, 1), b"x" * 201)
    writer = LogWriter(store, 0, 2)
    writer.append(b"ours\n")
    writer.flush()
    assert [line.text for line in read(store)] == ["ours"]


def test_a_time_that_nobody_of_us_wrote_is_not_shown() -> None:
    store = memory_store()
    store.put(layout.segment_path(0, 1, 1), b"\x1b[2J" + b"." * 23 + b"|text\n")
    assert [(line.time, line.text) for line in read(store)] == [("", "text")]


def test_the_tail_reads_only_the_last_segments() -> None:
    store = WatchedStore(memory_store())
    writer = LogWriter(store, 0, 1)
    for number in range(5):
        writer.append(f"{number}\n".encode())
        writer.flush()
    size = store.list(layout.logs_prefix(0))[0].size
    assert [line.text for line in read_last(store, range(1), 2 * size)] == ["3", "4"]
    assert [line.text for line in read_last(store, range(2), 10**6)] == list("01234")
