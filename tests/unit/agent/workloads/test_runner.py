"""A runner whose program counts its jobs, and ends when it is asked to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import cast

import pytest

from sojourn.agent.workloads import runner as module
from sojourn.agent.workloads.runner import RunnerLife
from sojourn.agent.workloads.workload import End
from sojourn.core.context import Context
from sojourn.core.report import Outcome
from sojourn.core.runner import Runner
from sojourn.core.task import Task
from tests.unit.agent.workloads.hosts import Snapshots, host_in


class _Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "machine"
        self.workdir = self.folder / "workdir"
        self.workdir.mkdir(parents=True)
        runner = Runner("gitlab", "https://example.com/a/b", "it", "tpi-it", idle_timeout=60)
        host = host_in(self.folder, Task("#!/bin/sh\n", runner=runner))
        self.life = RunnerLife(host, runner)
        self._snapshots = cast(Snapshots, host.snapshots)

    @property
    def stored(self) -> int:
        """How often the workdir was to be stored now."""
        return self._snapshots.asked

    def prepare(self) -> None:
        self.life.prepare(Context(), {})

    def tells(self, name: str, text: str = "") -> None:
        (self.workdir / "state" / name).write_text(text)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Machine:
    monkeypatch.setattr(module, "_ONLINE_WITHIN", 0.0)
    return _Machine(tmp_path)


@pytest.fixture
def jobs(machine: _Machine) -> Iterator[list[int]]:
    """The numbers that the program tells; the last one counts."""
    told = [0]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f'jobs{{state="running"}} {told[-1]}\n'.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    machine.prepare()
    port = int((machine.workdir / "state" / "port").read_text())
    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield told
        server.shutdown()
        thread.join()


def test_what_it_counts_is_kept_for_the_next_machine(machine: _Machine, jobs: list[int]) -> None:
    machine.tells("metric", "jobs\n")
    machine.tells("running")
    machine.life.end()
    before = machine.stored
    jobs.append(1)
    assert not machine.life.end()
    assert (machine.workdir / "busy").exists()
    jobs.append(0)
    assert not machine.life.end()
    assert not (machine.workdir / "busy").exists()
    assert machine.stored == before + 2


def test_a_program_that_is_slow_to_answer_still_has_its_job(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[float | None] = [1.0]
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr(module, "metric", lambda *_: counted[-1])
    machine.prepare()
    machine.tells("metric", "jobs\n")
    machine.tells("running")
    machine.life.end()
    machine.life.end()
    before, busy = machine.stored, machine.workdir / "busy"
    assert busy.exists()
    counted.append(None)
    for seconds in (2, 5):
        now[0] += seconds
        machine.life.end()
        assert busy.exists()
    assert machine.stored == before
    now[0] += 10
    machine.life.end()
    assert not busy.exists()


def test_it_is_asked_to_end_and_given_time(
    machine: _Machine, jobs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    life, end = machine.life, machine.workdir / "state" / "end"
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    for name, text in (("metric", "jobs"), ("ends-when-asked", ""), ("running", "")):
        machine.tells(name, text)
    assert not life.end()
    assert not end.exists()
    now[0] += 61
    assert not life.end()
    assert end.exists()
    assert life.reason == "no job for 1m"
    jobs.append(1)  # it came in the last moment
    now[0] += 1000
    assert not life.end()
    jobs.append(0)
    now[0] += 59
    assert not life.end()
    now[0] += 2
    assert life.end() == End(Outcome.SUCCEEDED, "no job for 1m", 0)


def test_a_job_that_was_lost_is_told_if_nothing_can_be_done(
    machine: _Machine, capfd: pytest.CaptureFixture[str]
) -> None:
    (machine.workdir / "busy").touch()
    machine.prepare()
    assert not (machine.workdir / "busy").exists()
    assert "a job may have been lost with the machine; re-run it by hand" in capfd.readouterr().err


def test_which_job_it_is_can_be_told_later(machine: _Machine) -> None:
    machine.prepare()
    machine.tells("running")
    told = machine.workdir / "jobs" / "now"
    told.parent.mkdir()
    machine.life.end()
    before = machine.stored
    for number, text in enumerate(("12\n", "12 {abc}\n", "12 {abc}\n")):
        told.write_text(text)
        machine.life.end()
        assert machine.stored == before + min(number + 1, 2)
