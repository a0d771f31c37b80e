"""The server's own life: it ends when nobody is there, and shows when somebody is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sojourn.core.errors import (
    AuthError,
    Conflict,
    IntegrityError,
    NotFound,
    QuotaError,
    SojournError,
    Transient,
)
from sojourn.storage.folder import FolderStore
from sojourn.storage.served.client import ServedStore
from sojourn.storage.served.frames import PREAMBLE, Frame, Kind, Parser, encode
from sojourn.storage.served.line import Line
from sojourn.storage.served.messages import batches, error_from, error_to, text_from, text_to
from sojourn.storage.served.server import serve
from sojourn.storage.served.signs import ASKED, CONNECTED
from tests.support.streams import served
from tests.support.waiting import until


def _run(folder: Path, said: bytes, *, idle: float = 30.0, end: bool = True) -> bytes:
    """What a server answers; its input ends, or stays silent."""
    ours, its = os.pipe(), os.pipe()
    os.write(ours[1], said)
    if end:
        os.close(ours[1])
    serve(FolderStore(folder), ours[0], its[1], idle=idle)
    os.close(its[1])
    with open(its[0], "rb") as answers:
        data = answers.read()
    for descriptor in (ours[0], *([] if end else [ours[1]])):
        os.close(descriptor)
    return data


@pytest.mark.timeout(60)
@pytest.mark.parametrize("said", [b"", b"sojo", PREAMBLE, PREAMBLE + b"\0"])
@pytest.mark.parametrize("end", [True, False])
def test_it_ends_with_its_input_and_after_a_silence(folder: Path, said: bytes, end: bool) -> None:
    assert _run(folder, said, idle=0.2, end=end).startswith(PREAMBLE)


def test_another_version_is_told_which_one_this_is(folder: Path) -> None:
    request = encode(Kind.REQUEST, 1, text_to({"call": "list", "prefix": "", "after": ""}))
    assert _run(folder, PREAMBLE.replace(b"1", b"2") + request) == PREAMBLE


@pytest.mark.parametrize(
    "said",
    [
        b'{"call":"shutdown"}',
        b'{"call":"get"}',
        b'{"call":"get","path":7}',
        b'{"call":"ranges","path":"a","ranges":[["x",{}]]}',
        b'{"call":"put","path":"a","size":-1}',
        b'{"call":"put","path":"a","size":"many"}',
        b"[]",
        b"nonsense",
    ],
)
def test_requests_that_make_no_sense_are_answered_with_an_error(folder: Path, said: bytes) -> None:
    answer = _run(folder, PREAMBLE + encode(Kind.REQUEST, 7, said))
    frames = list(Parser().feed(answer[len(PREAMBLE) :]))
    assert [(frame.kind, frame.id) for frame in frames] == [(Kind.FAILED, 7)]
    assert isinstance(error_from(text_from(frames[0].body)), SojournError)


def test_more_bytes_than_announced_are_refused(folder: Path) -> None:
    request = encode(Kind.REQUEST, 1, text_to({"call": "put", "path": "a", "size": 3}))
    answer = _run(folder, PREAMBLE + request + encode(Kind.DATA, 1, b"1234"))
    (frame,) = Parser().feed(answer[len(PREAMBLE) :])
    assert frame.kind == Kind.FAILED
    assert FolderStore(folder).list("") == []


def test_the_program_needs_the_standard_library_alone(folder: Path) -> None:
    source = Path(__file__).parents[4] / "src"
    done = subprocess.run(
        [sys.executable, "-S", "-m", "sojourn.storage.served", str(folder)],
        input=PREAMBLE,
        capture_output=True,
        env={"PYTHONPATH": str(source)},
        timeout=60,
        check=True,
    )
    assert done.stdout == PREAMBLE
    assert done.stderr == b""


def test_it_shows_that_somebody_asks_for_things(folder: Path, tmp_path: Path) -> None:
    with ServedStore(lambda: served(folder, "--signs", str(tmp_path))) as store:
        store.list("")
        for name in (ASKED, CONNECTED):
            os.utime(tmp_path / name, (1, 1))

            def touched(name: str = name) -> bool:
                store.list("")
                return (tmp_path / name).stat().st_mtime > 1

            until(touched)


def test_a_sign_of_life_asks_for_nothing(folder: Path, tmp_path: Path) -> None:
    with closing(served(folder, "--signs", str(tmp_path))) as stream:
        stream.write(PREAMBLE)
        until(lambda: (tmp_path / ASKED).exists())
        for name in (ASKED, CONNECTED):
            os.utime(tmp_path / name, (1, 1))

        def connected() -> bool:
            stream.write(encode(Kind.ALIVE, 0, b""))
            return (tmp_path / CONNECTED).stat().st_mtime > 1

        until(connected)
        assert (tmp_path / ASKED).stat().st_mtime == 1


@pytest.mark.parametrize("kind", [AuthError, IntegrityError, NotFound, QuotaError, Transient])
def test_errors_are_the_same_at_the_other_end(kind: type[SojournError]) -> None:
    error = error_from(text_from(error_to(kind("what", hint="how"))))
    assert type(error) is kind
    assert (error.message, error.hint) == ("what", "how")


@pytest.mark.parametrize("error", [Conflict("what"), ValueError("what"), KeyError("what")])
def test_other_errors_may_be_worth_another_try(error: Exception) -> None:
    again = error_from(text_from(error_to(error)))
    assert type(again) is Transient
    assert "what" in again.message


def test_paths_are_cut_into_requests_that_fit() -> None:
    paths = [f"{number:0200}" for number in range(1000)]
    found = list(batches(paths))
    assert [path for batch in found for path in batch] == paths
    assert len(found) > 1
    assert max(len(text_to(batch)) for batch in found) < 128 << 10


def test_small_frames_overtake_pieces_that_wait() -> None:
    go = threading.Semaphore(0)
    sent: list[Frame] = []

    def write(data: bytes) -> None:
        go.acquire()
        sent.extend(Parser().feed(data))

    line = Line(write)
    threads = [
        threading.Thread(target=line.send, args=(Kind.DATA, number, b"x")) for number in range(1, 5)
    ]
    for thread in threads:
        thread.start()
    until(lambda: not line.idle())
    small = threading.Thread(target=line.send, args=(Kind.REQUEST, 9, b"{}"))
    small.start()
    until(lambda: line._urgent)
    for _ in range(5):
        go.release()
    for thread in (*threads, small):
        thread.join()
    assert [frame.id for frame in sent].index(9) == 1


def test_only_what_shrinks_is_compressed_and_only_for_a_slow_line() -> None:
    line, text, noise = Line(lambda data: None), b"many words " * 10_000, os.urandom(100_000)
    line._rate = 1e6
    packed = line._packed(text)
    assert packed is not None
    assert len(packed) < len(text) / 10
    assert line._packed(noise) is None
    assert any(line._packed(text) for _ in range(40))  # it asks again, later
    line._rate = 1e9
    assert line._packed(text) is None
