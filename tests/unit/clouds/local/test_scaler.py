"""The files of a scaler, when what they say is out of date or torn."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sojourn
from sojourn.clouds.local.scaler import LocalScaler
from sojourn.core.context import Context
from sojourn.core.errors import NotFound
from sojourn.core.ids import TaskId
from sojourn.core.task import Task
from sojourn.host.backoff import Starts
from sojourn.host.folders import TaskFolders
from sojourn.host.supervisor import Supervisor
from tests.support.waiting import until

CTX = Context()
MACHINE = "zebra-0000"
EVENT = {"time": "2026-01-01T00:00:00Z", "code": "machine-started", "machine": MACHINE}


@pytest.fixture
def folders(tmp_path: Path) -> TaskFolders:
    made = TaskFolders(tmp_path / str(TaskId.deterministic("zebra")))
    made.store.mkdir(parents=True)
    return made


@pytest.fixture
def scaler(folders: TaskFolders, tmp_path: Path) -> LocalScaler:
    task_id = TaskId.deterministic("zebra")
    made = LocalScaler(folders, tmp_path / "cache" / "machines", task_id, Task("#!/bin/sh\n"))
    made.create(CTX)
    return made


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def write_machine(folders: TaskFolders, pid: int) -> None:
    row = {"id": MACHINE, "pid": str(pid), "started": "2026-01-01T00:00:00Z"}
    folders.machines.write_text(json.dumps([row]))


def machines(scaler: LocalScaler) -> list[str]:
    fleet = scaler.fleet(CTX)
    assert fleet
    return [machine.id for machine in fleet.machines]


@pytest.mark.parametrize("notice", [True, False])
def test_a_process_that_got_the_pid_of_a_machine_is_none(
    folders: TaskFolders, scaler: LocalScaler, notice: bool
) -> None:
    with running("sleep", "300") as innocent:
        write_machine(folders, innocent.pid)
        assert machines(scaler) == []
        with pytest.raises(NotFound):
            scaler.interrupt(CTX, MACHINE, notice=notice)
        with pytest.raises(subprocess.TimeoutExpired):
            innocent.wait(0.2)


def test_an_agent_is_a_machine(folders: TaskFolders, scaler: LocalScaler) -> None:
    program = "import time; time.sleep(300)"
    with running(sys.executable, "-c", program, f"/cache/{MACHINE}/agent.json") as agent:
        write_machine(folders, agent.pid)
        until(lambda: machines(scaler) == [MACHINE])
        scaler.interrupt(CTX, MACHINE, notice=False)
        assert agent.wait(10) < 0
    assert machines(scaler) == []


def test_a_process_that_ends_while_it_is_looked_at_is_no_machine(
    folders: TaskFolders, scaler: LocalScaler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(path: Path) -> bytes:
        raise ProcessLookupError  # what the kernel says if it ends between open and read

    write_machine(folders, 1)
    monkeypatch.setattr(Path, "read_bytes", gone)
    assert machines(scaler) == []


@pytest.mark.parametrize("torn", ['{"time": "2026', '{"time": "2026\n', "\0\0\0", "\udcff", "{"])
def test_a_torn_line_of_events_costs_no_other(
    folders: TaskFolders, scaler: LocalScaler, torn: str
) -> None:
    whole = json.dumps({**EVENT, "description": "before"})
    folders.events.write_bytes(f"{whole}\n{torn}".encode("utf-8", "surrogateescape"))
    assert [event.description for event in scaler.events(CTX)] == ["before"]
    Supervisor(folders)._tell("machine-lost", MACHINE, "after")
    assert [event.description for event in scaler.events(CTX)] == ["before", "after"]


def test_the_pid_of_a_former_supervisor_is_forgotten_before_there_is_a_new_one(
    folders: TaskFolders, scaler: LocalScaler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running("sleep", "300") as innocent:
        folders.supervisor_lock.write_text(str(innocent.pid))
        said = []

        def start(lock: int) -> None:
            said.append(folders.supervisor_lock.read_text())

        monkeypatch.setattr(scaler, "_start_supervisor", start)
        folders.wanted.write_text("1")
        scaler._revive()
        assert [text.split()[0] for text in said] == ["-"]
        assert innocent.poll() is None


def test_supervisors_that_cannot_start_are_started_more_and_more_seldom(
    folders: TaskFolders, scaler: LocalScaler
) -> None:
    folders.settings.write_text("")
    scaler.scale(CTX, 1)
    give_up = time.monotonic() + 3
    while time.monotonic() < give_up:
        scaler.fleet(CTX)
        time.sleep(0.02)
    said = folders.supervisor_log.read_text().splitlines()
    assert 2 < len(said) < 7
    assert f"{folders.settings} is damaged" in scaler.obstacle(CTX)
    scaler.create(CTX)  # which makes it right again
    scaler.scale(CTX, 1)
    assert scaler.obstacle(CTX) == ""
    until(lambda: machines(scaler))
    scaler.scale(CTX, 0)
    until(lambda: not folders.starts.exists())
    scaler.delete(CTX)


def test_the_log_of_supervisors_does_not_grow_without_end(
    folders: TaskFolders, scaler: LocalScaler
) -> None:
    folders.settings.write_text("{}")
    folders.supervisor_log.write_text("x" * 1_000_000)
    scaler.scale(CTX, 1)
    until(lambda: "damaged" in folders.supervisor_log.read_text())
    assert folders.supervisor_log.stat().st_size < 10_000
    scaler.delete(CTX)


@pytest.mark.parametrize(
    ("written", "due"),
    [
        ("1 {now}", True),
        ("2 {now}", False),
        ("2 {before}", True),
        ("9999 {now}", False),
        ("9999 {before}", True),
        ("9 {later}", True),  # the clock was set back
        ("", True),
        ("\0\0", True),
        ("x y", True),
    ],
)
def test_when_the_next_start_is_due(folders: TaskFolders, written: str, due: bool) -> None:
    folders.scaler.mkdir()
    now = time.time()
    folders.starts.write_text(written.format(now=now, before=now - 31, later=now + 100))
    assert Starts(folders.starts).are_due() is due


def test_a_machine_that_is_stopped_while_it_starts_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    handle = sojourn.create(sojourn.Task("#!/bin/sh\nsleep 60\n"))
    try:
        until(lambda: [each.code for each in handle.events()] == ["machine-started"])
        handle.stop()
        until(lambda: len(handle.events()) == 2)  # told a moment after it ended
        assert handle.events()[-1].code == "machine-gone"
    finally:
        handle.delete()
