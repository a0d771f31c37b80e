"""Why there may be no way into the machine of a rank, and a command's input and output at once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from sojourn.core.activity import Activity, Doing
from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, NotFound, SojournError, Transient
from sojourn.core.ids import TaskId
from sojourn.core.status import INCOMPLETE, RankStatus, State, Status, of_ranks
from sojourn.engine import reaching

_ID = TaskId.deterministic("x")
_RESTORING = Activity(Doing.RESTORING, 1 << 30, 3 << 30)


class _Moon:
    name = "moon"

    def reach(self, id: TaskId, machine: str) -> Any:
        return id, machine


def _reach(monkeypatch: pytest.MonkeyPatch, now: Status, rank: int = 0) -> Any:
    monkeypatch.setattr(reaching, "require", lambda *_: None)
    monkeypatch.setattr(reaching, "status", lambda *_: now)
    cloud: Any = _Moon()
    return reaching.reach(Context(), cloud, _ID, rank)


def test_the_machine_of_a_rank_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = [RankStatus(n, State.RUNNING, 1, machine=f"m{n}") for n in range(2)]
    assert _reach(monkeypatch, of_ranks(ranks), 1) == (_ID, "m1")


@pytest.mark.parametrize(
    ("found", "kind", "told"),
    [
        (RankStatus(0, State.SUCCEEDED, 1), NotFound, f"Task {_ID} has ended: succeeded"),
        (RankStatus(0, State.TIMED_OUT, 1), NotFound, f"Task {_ID} has ended: timed-out"),
        (RankStatus(0, State.STOPPED, 1), NotFound, f"Task {_ID} is stopped"),
        (
            RankStatus(0, State.RECOVERING, 1, reason="lost; waiting for a new machine"),
            Transient,
            f"Task {_ID} has no machine now: lost; waiting for a new machine",
        ),
        (RankStatus(0, State.QUEUED), Transient, f"Task {_ID} has no machine now: queued"),
        (
            RankStatus(0, State.RUNNING, 1, machine="m", activity=_RESTORING),
            Transient,
            f"Task {_ID} is not running yet: restoring workdir: 1.0 of 3.0 GiB",
        ),
    ],
)
def test_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, found: RankStatus, kind: type[SojournError], told: str
) -> None:
    with pytest.raises(kind) as caught:
        _reach(monkeypatch, of_ranks([found]))
    assert (caught.value.message, bool(caught.value.hint)) == (told, True)


def test_a_task_that_is_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="has no machines: creation did not finish"):
        _reach(monkeypatch, INCOMPLETE)


class _Deaf:
    """A command that closes its input at once, and fails while it prints."""

    closed = False

    def write(self, data: bytes) -> None:
        raise BrokenPipeError

    def close_input(self) -> None:
        raise BrokenPipeError

    def output(self) -> Any:
        yield 2, b"half"
        raise Transient("connection lost")

    def close(self) -> None:
        self.closed = True


def test_a_command_is_closed_whatever_happens() -> None:
    process: Any = _Deaf()
    with pytest.raises(Transient, match="connection lost"):
        reaching.exchange(process, b"data")
    assert process.closed


class _Silent:
    """A command that reads all of its input, says one thing, and then nothing until it is ended."""

    def __init__(self) -> None:
        self.read = b""
        self._ended = threading.Event()

    def write(self, data: bytes) -> None:
        self.read += data

    def close_input(self) -> None:
        """It has all."""

    def output(self) -> Any:
        yield 1, b"hello"
        self._ended.wait()

    def close(self) -> None:
        self._ended.set()


def test_whoever_follows_a_silent_command_can_stop() -> None:
    process: Any = _Silent()
    ctx = Context()
    pieces = reaching.follow(ctx, process, b"input")
    assert next(pieces) == b"hello"
    ctx.cancel()
    with pytest.raises(Cancelled):
        next(pieces)
    assert process.read == b"input"
    assert process._ended.is_set()


def test_a_command_that_is_followed_is_closed_whatever_happens() -> None:
    process: Any = _Deaf()
    with pytest.raises(Transient, match="connection lost"):
        list(reaching.follow(Context(), process, b"data"))
    assert process.closed
