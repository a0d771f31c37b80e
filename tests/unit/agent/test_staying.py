"""A machine that stays, and when it counts as idle."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sojourn.agent import staying
from sojourn.agent.staying import Idle


class _Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("sojourn.agent.staying.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    return _Clock(monkeypatch)


def _after(clock: _Clock, idle: Idle, seconds: float) -> bool:
    """Asked as often as an agent asks."""
    end = clock.now + seconds
    over = False
    while clock.now < end:
        clock.now = min(end, clock.now + idle.look_within)
        over = idle.over()
    return over


def test_nothing_to_do_for_too_long(clock: _Clock) -> None:
    idle = Idle(600, lambda: 5.0)
    assert not _after(clock, idle, 590)
    assert _after(clock, idle, 20)


def test_what_waits_for_somebody_is_idle(clock: _Clock) -> None:
    idle = Idle(600, lambda: clock.now * 0.02)
    assert _after(clock, idle, 600)


def test_work_begins_the_time_anew(clock: _Clock) -> None:
    worked = [0.0]
    idle = Idle(600, lambda: worked[0])
    assert not _after(clock, idle, 500)
    worked[0] += 3
    assert not _after(clock, idle, 500)
    assert _after(clock, idle, 130)


def test_a_short_limit_is_kept(clock: _Clock) -> None:
    idle = Idle(2, lambda: 0.0)
    assert not _after(clock, idle, 1.5)
    assert _after(clock, idle, 1)


def test_no_limit_asks_nobody(clock: _Clock) -> None:
    idle = Idle(0, lambda: 1 / 0)
    clock.now += 1e9
    assert not idle.over()
    assert idle.look_within == float("inf")


@pytest.mark.parametrize("code", [0, 3])
def test_the_machine_stays_after_its_script(tmp_path: Path, code: int) -> None:
    startup = tmp_path / "a 'b"
    startup.write_text(f'#!/bin/sh\necho "$1"; exit {code}\n')
    startup.chmod(0o700)
    script = tmp_path / "script"
    text = staying.staying(startup)
    assert f"sleep {staying._FOREVER}" in text
    script.write_text(text.replace(f"sleep {staying._FOREVER}", "echo stays"))
    done = subprocess.run(["sh", script, "one"], capture_output=True, text=True, check=True)
    told = ["sojourn: the script ended with exit code 3; the machine stays"] if code else []
    assert done.stdout.splitlines() == ["one", *told, "stays"]
