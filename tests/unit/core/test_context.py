from __future__ import annotations

import threading
import time

import pytest

from sojourn.core.context import Context
from sojourn.core.errors import Cancelled, NotFound, Transient
from sojourn.core.events import Event, Note, Progress, StepEnded, StepStarted, Warned


def test_cancelling_wakes_a_sleeper_at_once() -> None:
    ctx = Context()
    threading.Timer(0.05, ctx.cancel).start()
    start = time.monotonic()
    with pytest.raises(Cancelled):
        ctx.sleep(60)
    assert time.monotonic() - start < 10


def test_sleep_takes_its_time() -> None:
    start = time.monotonic()
    Context().sleep(0.05)
    assert time.monotonic() - start >= 0.04


def test_sleep_ends_at_the_deadline() -> None:
    start = time.monotonic()
    with pytest.raises(Transient, match="Timed out"):
        Context().within(0.05).sleep(60)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("seconds", [0, -1])
def test_sleep_of_nothing(seconds: float) -> None:
    Context().sleep(seconds)
    cancelled = Context()
    cancelled.cancel()
    with pytest.raises(Cancelled):
        cancelled.sleep(seconds)


def test_sleep_for_ever_can_be_cancelled() -> None:
    ctx = Context()
    threading.Timer(0.05, ctx.cancel).start()
    with pytest.raises(Cancelled):
        ctx.sleep(float("inf"))


def test_check() -> None:
    Context().check()
    with pytest.raises(Transient):
        Context(deadline=time.monotonic() - 1).check()
    with pytest.raises(Transient):
        Context().within(0).check()
    ctx = Context()
    ctx.cancel()
    with pytest.raises(Cancelled):
        ctx.check()


def test_cancelling_comes_before_the_deadline() -> None:
    ctx = Context(deadline=0)
    ctx.cancel()
    with pytest.raises(Cancelled):
        ctx.check()


def test_within_never_gives_more_time() -> None:
    ctx = Context(deadline=time.monotonic() + 10)
    assert ctx.within(60).deadline == ctx.deadline
    assert ctx.within(1).deadline < ctx.deadline
    assert Context().deadline == float("inf")


def test_within_shares_cancellation_and_events() -> None:
    seen: list[Event] = []
    ctx = Context(seen.append)
    inner = ctx.within(60)
    inner.note("n")
    assert seen == [Note("n")]
    ctx.cancel()
    with pytest.raises(Cancelled):
        inner.check()


def test_a_given_flag_cancels() -> None:
    flag = threading.Event()
    ctx = Context(cancelled=flag)
    flag.set()
    with pytest.raises(Cancelled):
        ctx.check()


def test_shielded_is_deaf_to_cancellation_and_has_all_the_time() -> None:
    seen: list[Event] = []
    ctx = Context(seen.append, deadline=time.monotonic() + 60)
    ctx.cancel()
    shielded = ctx.shielded()
    shielded.check()
    shielded.warn("w")
    assert seen == [Warned("w")]
    assert shielded.deadline == float("inf")
    Context(deadline=0).shielded().check()


def test_shielding_does_not_undo_cancellation() -> None:
    ctx = Context()
    ctx.shielded().cancel()
    ctx.check()


def test_step() -> None:
    seen: list[Event] = []
    ctx = Context(seen.append)
    with ctx.step("Creating"):
        assert seen == [StepStarted("Creating")]
        ctx.progress("Creating", 1, 2)
        time.sleep(0.02)
    _, progress, ended = seen
    assert progress == Progress("Creating", 1, 2, "bytes")
    assert isinstance(ended, StepEnded)
    assert (ended.step, ended.error) == ("Creating", "")
    assert 0.01 <= ended.seconds < 10


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NotFound("It is gone"), "It is gone"),
        (ValueError(), "ValueError"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_a_step_that_fails_ends_with_its_error(error: BaseException, text: str) -> None:
    seen: list[Event] = []
    with pytest.raises(type(error)), Context(seen.append).step("Creating"):
        raise error
    ended = seen[-1]
    assert isinstance(ended, StepEnded)
    assert ended.error == text


def test_a_step_does_not_begin_after_cancellation() -> None:
    seen: list[Event] = []
    ctx = Context(seen.append)
    ctx.cancel()
    with pytest.raises(Cancelled), ctx.step("Creating"):
        raise AssertionError("must not be reached")
    assert seen == []


def test_events_of_many_threads_come_one_after_the_other() -> None:
    inside = 0
    most = 0

    def emit(_: Event) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        time.sleep(0.01)
        inside -= 1

    ctx = Context(emit)
    contexts = (ctx, ctx.within(60), ctx.shielded())
    threads = [threading.Thread(target=one.note, args=("told",)) for one in contexts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_what_is_emitted_can_be_heard_on_its_way() -> None:
    told: list[Event] = []
    notes: list[Note] = []
    ctx = Context(told.append)
    listening = ctx.heard(notes, Note)
    listening.note("one")
    listening.warn("two")
    ctx.note("three")
    assert [note.message for note in notes] == ["one"]
    assert len(told) == 3
    ctx.cancel()
    with pytest.raises(Cancelled):
        listening.check()
