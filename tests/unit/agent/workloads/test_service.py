"""A machine that stays, and when it counts as idle."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sojourn.agent.workloads import service as staying
from sojourn.agent.workloads.service import Idle, Service
from sojourn.agent.workloads.workload import End
from sojourn.core.report import Outcome
from sojourn.core.task import Task
from tests.unit.agent.workloads.hosts import host_in


class _Script:
    """A script that runs, as far as services look at it."""

    def __init__(self, used: Callable[[], float] = lambda: 1 / 0) -> None:
        self.used = used


class _Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("sojourn.agent.workloads.service.time.monotonic", lambda: self.now)


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


def test_no_limit_asks_nobody(tmp_path: Path) -> None:
    service = Service(host_in(tmp_path / "machine", Task("#!/bin/sh\n", stay=True)))
    script: Any = _Script()
    service.start(script)
    assert service.end() is None
    assert service.look_within == float("inf")


def test_what_is_idle_has_succeeded(tmp_path: Path, clock: _Clock) -> None:
    task = Task("#!/bin/sh\n", stay=True, idle_timeout=20)
    service = Service(host_in(tmp_path / "machine", task))
    script: Any = _Script(used=lambda: 0.0)
    service.start(script)
    assert service.end() is None
    clock.now += 21
    assert service.end() == End(Outcome.SUCCEEDED, "idle for 20s", 0)


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
