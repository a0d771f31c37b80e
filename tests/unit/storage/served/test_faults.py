"""Streams break, stall and lie; calls get their answer all the same, and nothing is half there."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import (
    AuthError,
    Cancelled,
    Conflict,
    IntegrityError,
    QuotaError,
    Transient,
)
from sojourn.storage.folder import FolderStore
from sojourn.storage.interruptible import Interruptible
from sojourn.storage.served.client import ServedStore
from sojourn.storage.served.frames import PREAMBLE
from tests.support.disks import small_disk
from tests.support.streams import Faulty, ProcessStream, served
from tests.support.waiting import until

LARGE = random.Random(1).randbytes(3 << 20)


def _clean(folder: Path) -> bool:
    return not list(folder.rglob(".sojourn-*"))


class _Cut:
    """Cuts a stream after so many bytes."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise OSError("cut on purpose")
        return data


def _cut(folder: Path, after: list[int], side: str) -> Callable[[], Faulty]:
    def open_stream() -> Faulty:
        cut = _Cut(after.pop(0) if after else 1 << 40)
        return Faulty(served(folder), **{side: cut})

    return open_stream


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("side", ["wrote", "got"])
def test_a_stream_that_is_cut_anywhere(folder: Path, side: str, seed: int) -> None:
    points = random.Random(seed)
    after = [
        points.randrange(10),
        points.randrange(200),
        *(points.randrange(9 << 20) for _ in "12"),
    ]
    names = [f"objects/{number}" for number in range(6)]
    with ServedStore(_cut(folder, after, side)) as store, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda name: store.put(name, LARGE + name.encode()), names))
        assert all(pool.map(lambda name: store.put_new(f"new/{name}", LARGE), names))
        for name in names:
            assert bytes(store.get(name)) == LARGE + name.encode()
            assert b"".join(store.stream(name)) == LARGE + name.encode()
        assert len(store.list("")) == 12
        assert not store.put_new("new/objects/0", b"another")


@pytest.mark.parametrize("side", ["wrote", "got"])
def test_a_byte_that_changes_on_the_way(folder: Path, side: str) -> None:
    left = [3]

    def damage(data: bytes) -> bytes:
        if len(data) > 1000 and left[0]:
            left[0] -= 1
            changed = bytearray(data)
            changed[500] ^= 1
            return bytes(changed)
        return data

    with ServedStore(lambda: Faulty(served(folder), **{side: damage})) as store:
        store.put("a", LARGE)
        assert bytes(store.get("a")) == LARGE
    assert left == [0]


def test_an_answer_that_is_lost_does_not_lose_the_race(folder: Path) -> None:
    streams: list[Faulty] = []

    def open_stream() -> Faulty:
        last = PREAMBLE if not streams else b""

        def got(data: bytes) -> bytes:
            if last and data != PREAMBLE:
                raise OSError("the answer is lost")
            return data

        streams.append(Faulty(served(folder), got=got))
        return streams[-1]

    with ServedStore(open_stream) as store:
        assert store.put_new("a", b"mine")
        assert len(streams) == 2
        assert not store.put_new("a", b"yours")


@pytest.mark.parametrize("new", [False, True])
def test_a_server_that_is_killed_leaves_nothing_half(folder: Path, new: bool) -> None:
    processes: list[ProcessStream] = []
    sent = [0]

    def wrote(data: bytes) -> bytes:
        sent[0] += len(data)
        if len(processes) == 1 and sent[0] > 2 << 20:
            processes[0].process.kill()
            processes[0].process.wait()
            assert FolderStore(folder).list("") == []
            with pytest.raises(OSError, match="pipe"):
                processes[0].write(b"x")
            raise OSError("killed")
        return data

    def open_stream() -> Faulty:
        processes.append(served(folder))
        return Faulty(processes[-1], wrote=wrote)

    with ServedStore(open_stream) as store:
        if new:
            assert store.put_new("a", LARGE)
        else:
            store.put("a", LARGE)
        assert bytes(store.get("a")) == LARGE
        assert [item.path for item in store.list("")] == ["a"]


def test_a_stream_that_ends_leaves_no_file_of_an_upload(folder: Path) -> None:
    with ServedStore(_cut(folder, [1 << 20], "wrote")) as store:
        store.put("a", LARGE)
        assert bytes(store.get("a")) == LARGE


def test_many_threads_at_once(store: ServedStore, folder: Path) -> None:
    def work(number: int) -> bool:
        body = LARGE[: (number % 7) * 100_000 + number]
        store.put(f"o/{number}", body)
        assert not store.put_new(f"o/{number}", b"other bytes, for sure")
        head = store.head(f"o/{number}")
        assert head
        assert head.size == len(body)
        return bytes(store.get(f"o/{number}")) == body == b"".join(store.stream(f"o/{number}"))

    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(work, range(128)))
    assert len(store.list("o")) == 128
    assert _clean(folder)


def test_a_small_call_does_not_wait_for_a_large_one(folder: Path) -> None:
    def slowly(data: bytes) -> bytes:
        time.sleep(len(data) / 4e6)
        return data

    with ServedStore(lambda: Faulty(served(folder), wrote=slowly)) as store:
        store.put("a", b"x")
        uploads = [
            threading.Thread(target=store.put, args=(f"big/{number}", LARGE)) for number in range(4)
        ]
        for upload in uploads:
            upload.start()
        heads = 0
        while any(upload.is_alive() for upload in uploads):
            assert store.head("a")
            heads += 1
        assert heads > 10  # of 12 MiB at 4 MB/s, and each waits for a piece or two


def test_a_full_disk_is_told_while_the_body_is_still_on_its_way(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk, ServedStore(lambda: served(disk)) as store:
        for put in (store.put, store.put_new):
            with pytest.raises(QuotaError):
                put("a/b", LARGE)
        assert store.list("") == []
        assert _clean(disk)
        store.put("a/b", b"small")


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside", "", "a\0b"])
def test_paths_do_not_lead_out_of_the_folder(store: ServedStore, folder: Path, path: str) -> None:
    (folder.parent / "outside").write_bytes(b"secret")
    calls: list[Callable[[], object]] = [
        lambda: store.get(path),
        lambda: store.put(path, b"x"),
        lambda: store.put(path, LARGE),
        lambda: store.put_new(path, LARGE),
        lambda: store.delete([path]),
        lambda: store.copy(path, "a"),
    ]
    for call in calls:
        with pytest.raises(IntegrityError, match="invalid path"):
            call()
    assert (folder.parent / "outside").read_bytes() == b"secret"
    assert store.list("") == []


class _Scripted:
    """A stream that says one thing, and then waits or ends."""

    def __init__(self, said: bytes, *, waits: bool = False) -> None:
        self._said = said
        self._waits = waits
        self._closed = threading.Event()

    def write(self, data: bytes) -> None:
        if self._closed.is_set():
            raise OSError("closed")

    def read(self) -> bytes:
        said, self._said = self._said, b""
        if not said and self._waits:
            self._closed.wait()
        return said

    def close(self) -> None:
        self._closed.set()


def test_another_version_is_an_error_that_says_so() -> None:
    store = ServedStore(lambda: _Scripted(b"sojourn-store/9\n"))
    with store, pytest.raises(Conflict, match="sojourn-store/9"):
        store.get("a")


@pytest.mark.parametrize("said", [b"bash: python3: command not found\n", b""])
def test_what_is_no_server_is_told_in_its_own_words(said: bytes) -> None:
    expected = said.decode().strip() or "it said nothing"
    store = ServedStore(lambda: _Scripted(said), retry_for=0.5)
    with store, pytest.raises(Transient, match=expected):
        store.get("a")


def test_a_stream_that_cannot_be_opened_is_tried_again(folder: Path) -> None:
    trouble: list[Exception] = [Transient("not yet"), OSError("neither")]

    def open_stream() -> ProcessStream:
        if trouble:
            raise trouble.pop()
        return served(folder)

    with ServedStore(open_stream) as store:
        assert store.list("") == []


def test_access_that_is_denied_is_not_tried_again() -> None:
    tries = []

    def open_stream() -> ProcessStream:
        tries.append(1)
        raise AuthError("denied")

    with ServedStore(open_stream) as store, pytest.raises(AuthError):
        store.get("a")
    assert len(tries) == 1


def test_a_store_that_is_out_of_reach_is_given_up_in_time() -> None:
    def open_stream() -> ProcessStream:
        raise Transient("no route", hint="Wait.")

    start = time.monotonic()
    with (
        ServedStore(open_stream, retry_for=0.5) as store,
        pytest.raises(Transient, match="no route"),
    ):
        store.get("a")
    assert time.monotonic() - start < 20


def test_closing_ends_calls_and_threads(folder: Path) -> None:
    before = set(threading.enumerate())
    store = ServedStore(lambda: _Scripted(PREAMBLE, waits=True))
    raised: list[Exception] = []

    def call() -> None:
        try:
            store.get("a")
        except Transient as error:
            raised.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    while store._opener._connection is None:
        time.sleep(0.01)
    store.close()
    caller.join(10)
    assert len(raised) == 1
    assert set(threading.enumerate()) <= before
    with pytest.raises(Transient, match="closed"):
        store.get("a")


@pytest.mark.slow
def test_large_bodies_take_little_memory(folder: Path) -> None:
    code = f"""
import os
from pathlib import Path
from concurrent.futures import ThreadPoolExecutor
from sojourn.storage.interruptible import Interruptible
from sojourn.storage.served.client import ServedStore
from tests.support.streams import served
streams = []
def open_stream():
    streams.append(served(Path({str(folder)!r})))
    return streams[-1]
body = os.urandom(8 << 20)
with ServedStore(open_stream) as store, ThreadPoolExecutor(4) as pool:
    for _ in pool.map(lambda n: store.put(f"o/{{n}}", body), range(128)):
        pass
    for same in pool.map(lambda n: bytes(store.get(f"o/{{n}}")) == body, range(128)):
        assert same
    for pid in (os.getpid(), *(stream.process.pid for stream in streams)):
        peak = [line for line in open(f"/proc/{{pid}}/status") if line.startswith("VmHWM")]
        print(peak[0].split()[1])
"""
    stream = ProcessStream("env", f"PYTHONPATH={os.getcwd()}", sys.executable, "-c", code)
    said = b""
    while data := stream.read():
        said += data
    assert stream.process.wait() == 0
    ours, theirs = (int(size) >> 10 for size in said.split())
    assert ours < 150
    assert theirs < 60


def test_a_call_that_gets_no_answer_ends_with_its_caller() -> None:
    """And the thread that made it ends when the store is closed."""
    before = set(threading.enumerate())
    ctx = Context()
    with ServedStore(lambda: _Scripted(PREAMBLE, waits=True)) as store:
        threading.Timer(0.3, ctx.cancel).start()
        with pytest.raises(Cancelled):
            Interruptible(store, ctx).get("a")
    until(lambda: set(threading.enumerate()) <= before)
