"""What a script prints: all of it arrives, soon enough, in little memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sojourn.core.context import Context
from sojourn.core.report import Outcome
from tests.support.waiting import patience, until
from tests.unit.agent.world import World

_MEMORY = 80 * 1024  # kB
_EVERY = 10  # seconds between segments while nobody follows


def _most_segments(seconds: float) -> float:
    """Of a script that took so long, on a busy computer longer: one with its first line, one at
    its end, and those between."""
    return seconds // _EVERY + 2


def test_partial_lines_and_no_end(world: World) -> None:
    world.run("printf a; sleep 0.5; printf b; echo; printf 'no end'")
    assert world.printed() == "ab\nno end"


def test_both_outputs_in_order(world: World) -> None:
    world.run("for i in 1 2 3; do echo out $i; echo err $i >&2; done")
    assert world.printed() == "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n"


def test_binary_junk(world: World) -> None:
    report = world.run(r"printf 'a\0b\xff\xfe\n|>\r\n\x1b[31mred\n'; head -c 300000 /dev/urandom")
    assert report.outcome is Outcome.SUCCEEDED
    assert world.printed().startswith("a\0b\ufffd\ufffd\n|>\r\n\x1b[31mred\n")


def test_empty_lines(world: World) -> None:
    world.run("echo; echo; printf '\n'")
    assert world.printed() == "\n\n\n"


def test_a_flood(world: World) -> None:
    world.task(
        "seq -w 2500000",
    )  # 20 MB
    agent = world.agent()
    assert agent.wait(60) == 0
    lines = world.raw()
    assert len(lines) == 2_500_000
    assert (lines[0], lines[1_000_000], lines[-1]) == (b"0000001", b"1000001", b"2500000")
    assert agent.memory < _MEMORY


_LARGE = "head -c 150000000 /dev/urandom > large"
_SMALL = "mkdir t; head -c 150000000 /dev/urandom | split -a 4 -b 100000 - t/; mv t small"


@pytest.mark.parametrize("write", [_LARGE, _SMALL])
def test_memory_while_files_are_stored_and_restored(world: World, write: str) -> None:
    world.task(f"[ -e done ] && exit; {write}; touch done; sleep 60")
    first = world.agent("m1")
    until(lambda: (world.folder / "m1" / "workdir" / "done").exists(), 60)
    first.notice()
    assert first.wait(60) == 75
    assert first.memory < _MEMORY
    second = world.agent("m2")
    assert second.wait(60) == 0
    assert second.memory < _MEMORY


def test_lines_come_at_once_while_somebody_follows(world: World) -> None:
    # Each line waits until the one before it was read, so that none comes together with another.
    seen = world.folder / "seen"
    world.task(f"for i in 1 2 3; do date +%s.%N; until [ -e {seen}$i ]; do sleep 0.1; done; done")
    world.data.watch(Context())
    agent = world.agent()
    delays = []
    for count in (1, 2, 3):
        until(lambda count=count: len(world.lines()) >= count)  # type: ignore[misc]
        delays.append(time.time() - float(world.lines()[count - 1].text))
        Path(f"{seen}{count}").touch()
    assert sorted(delays)[1] < patience(1.5)
    assert agent.wait() == 0
    (report,) = world.reports()
    assert report.segments >= 3


def test_lines_come_together_while_nobody_follows(world: World) -> None:
    start = time.monotonic()
    world.task("for i in $(seq 30); do echo $i; sleep 0.1; done")
    assert world.agent().wait() == 0
    (report,) = world.reports()
    assert 1 <= report.segments <= _most_segments(time.monotonic() - start)
    assert len(world.lines()) == 30


def test_a_follower_who_comes_later(world: World) -> None:
    world.task("while [ ! -e enough ]; do echo line; sleep 0.1; done")
    agent = world.agent()
    until(lambda: world.store.list("attempts"))
    time.sleep(1.5)
    before = len(world.store.list("logs"))
    world.data.watch(Context())
    until(lambda: len(world.store.list("logs")) >= before + 3, 5)
    (world.folder / "m1" / "workdir" / "enough").touch()
    assert agent.wait() == 0


@pytest.mark.slow
def test_a_night_without_followers_costs_few_puts_and_stays_fresh(world: World) -> None:
    start = time.monotonic()
    world.task("for i in $(seq 60); do date +%s; sleep 0.5; done")
    agent = world.agent()
    oldest = 0.0
    while agent.process.poll() is None:
        time.sleep(0.2)
        read = world.lines()
        if read:
            oldest = max(oldest, time.time() - float(read[-1].text))
    assert agent.wait() == 0
    (report,) = world.reports()
    assert report.segments <= _most_segments(time.monotonic() - start)
    assert oldest < _EVERY + patience(3)
