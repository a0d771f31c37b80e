"""The same home on another computer or in another container: pids there are not ours."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sojourn
from sojourn import Storage, Task
from sojourn.clouds.local.scaler import LocalScaler
from sojourn.core.context import Context
from sojourn.core.errors import Conflict
from sojourn.core.ids import TaskId
from sojourn.host.folders import TaskFolders
from sojourn.host.identity import Place, Supervised
from tests.support.waiting import until

CTX = Context()
MACHINE = "zebra-0000"
HERE = Place.here()
CONTAINER = Place("box", HERE.boot, "pid:[1]")
OTHER = Place("login2", "another-boot", "pid:[1]")
REBOOTED = Place(HERE.host, "another-boot", HERE.pids)

needs_boot_ids = pytest.mark.skipif(HERE.boot == "?", reason="only Linux tells which boot it is")


@pytest.fixture
def folders(tmp_path: Path) -> TaskFolders:
    return TaskFolders(tmp_path / str(TaskId.deterministic("zebra")))


@pytest.fixture
def scaler(folders: TaskFolders, tmp_path: Path) -> LocalScaler:
    folders.store.mkdir(parents=True)
    task_id = TaskId.deterministic("zebra")
    made = LocalScaler(folders, tmp_path / "cache/machines", task_id, Task("#!/bin/sh\n"))
    made.create(CTX)
    row = {"id": MACHINE, "pid": "1", "started": "2026-01-01T00:00:00Z"}
    folders.machines.write_text(json.dumps([row]))
    folders.wanted.write_text("1")
    return made


@contextmanager
def supervised(folders: TaskFolders, pid: int, place: Place) -> Iterator[None]:
    """The lock, as a supervisor holds it."""
    with open(folders.supervisor_lock, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(Supervised(pid, place).text())
        lock.flush()
        yield


@contextmanager
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has to stay alive."""
    process = subprocess.Popen(["sleep", "300"])
    try:
        yield process
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
    finally:
        process.kill()
        process.wait()


def left_by(folders: TaskFolders, place: Place) -> None:
    """The lock, as a supervisor leaves it that is killed."""
    folders.supervisor_lock.write_text(Supervised(4711, place).text())


def machines(scaler: LocalScaler) -> list[str]:
    fleet = scaler.fleet(CTX)
    assert fleet
    return [machine.id for machine in fleet.machines]


@pytest.mark.parametrize("place", [CONTAINER, OTHER], ids=["container", "computer"])
def test_a_supervisor_elsewhere_is_believed_and_not_signalled(
    folders: TaskFolders, scaler: LocalScaler, place: Place
) -> None:
    with innocent() as process, supervised(folders, process.pid, place):
        assert machines(scaler) == [MACHINE]
        scaler.scale(CTX, 0)
        assert folders.wanted.read_text() == "0"
        with pytest.raises(Conflict, match=place.host):
            scaler.interrupt(CTX, MACHINE, notice=True)


def test_who_has_the_pid_of_a_supervisor_that_was_killed_is_not_signalled(
    folders: TaskFolders, scaler: LocalScaler
) -> None:
    with innocent() as process, supervised(folders, process.pid, HERE):  # held to look
        scaler.scale(CTX, 0)


@pytest.mark.parametrize("place", [HERE, CONTAINER, REBOOTED], ids=["here", "container", "boot"])
@needs_boot_ids
def test_one_that_was_killed_where_locks_tell_is_replaced(
    folders: TaskFolders, scaler: LocalScaler, monkeypatch: pytest.MonkeyPatch, place: Place
) -> None:
    started: list[int] = []
    monkeypatch.setattr(scaler, "_start_supervisor", started.append)
    left_by(folders, place)
    assert machines(scaler) == []
    assert len(started) == 1


def test_one_that_may_live_on_another_computer_is_not_replaced(
    folders: TaskFolders, scaler: LocalScaler, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    monkeypatch.setattr(scaler, "_start_supervisor", started.append)
    left_by(folders, OTHER)
    with pytest.raises(Conflict, match="login2") as caught:
        scaler.fleet(CTX)
    assert str(folders.supervisor_lock) in caught.value.hint
    with pytest.raises(Conflict):
        scaler.scale(CTX, 2)
    assert folders.wanted.read_text() == "1"
    scaler.scale(CTX, 0)
    assert folders.wanted.read_text() == "0"  # it stops if it sees that
    with pytest.raises(Conflict):
        scaler.fleet(CTX)
    with pytest.raises(Conflict):
        scaler.delete(CTX)
    assert folders.scaler.exists()
    assert not started
    folders.supervisor_lock.unlink()  # as the hint says
    assert machines(scaler) == []


def test_the_locks_of_former_versions_have_a_pid_alone() -> None:
    assert Supervised.parse("4711") == Supervised(4711)
    assert Supervised.parse("") == Supervised()


@pytest.mark.parametrize("text", ["\0\0", "?", "- a b", "1 2 3 4 5", "-7"])
def test_what_a_lock_says_may_be_damaged(text: str) -> None:
    assert Supervised.parse(text).place is None


def test_the_results_of_the_last_moment_come_home_into_another_container(
    own_folders: Path, tmp_path: Path
) -> None:
    apart = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("needs root on Linux, to have pids apart")
    script = """#!/bin/bash
    mkdir results; echo early > results/r
    trap 'echo late > results/r; exit 0' TERM
    touch results/ready
    while :; do sleep 0.1; done
    """
    (tmp_path / "work").mkdir()
    storage = Storage(workdir=str(tmp_path / "work"), output="results")
    handle = sojourn.create(Task(script, storage=storage))
    until(lambda: list((tmp_path / "cache").rglob("ready")))
    command = [*apart, sys.executable, "-m", "sojourn.cli"]
    status = subprocess.run(
        [*command, "status", "--json", handle.id], capture_output=True, text=True, check=True
    )
    assert '"running"' in status.stdout
    into = tmp_path / "home"
    into.mkdir()
    subprocess.run([*command, "delete", handle.id, "--into", str(into)], check=True)
    assert (into / "results/r").read_text() == "late\n"
    assert not (own_folders / handle.id).exists()
