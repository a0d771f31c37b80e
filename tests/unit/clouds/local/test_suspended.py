"""Processes that somebody suspended do not hold up who wants them gone."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State, Storage, Task
from sojourn.engine import lifecycle
from sojourn.host.files import read_machines
from sojourn.host.folders import TaskFolders
from tests.support.waiting import until


@pytest.fixture
def handle(own_folders: Path, tmp_path: Path) -> Handle:
    script = f"#!/bin/sh\nmkdir -p out; echo done > out/file; touch {tmp_path}/up; sleep 300\n"
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    task = Task(script, storage=Storage(workdir=str(workdir), output="out"))
    made = sojourn.create(task)
    until((tmp_path / "up").exists)
    return made


@pytest.fixture
def folders(handle: Handle, own_folders: Path) -> TaskFolders:
    return TaskFolders(own_folders / handle.id)


def supervisor(folders: TaskFolders) -> int:
    until(lambda: folders.supervisor_lock.read_text().split()[0] != "-")
    return int(folders.supervisor_lock.read_text().split()[0])


def agent(folders: TaskFolders) -> int:
    return int(read_machines(folders.machines)[0]["pid"])


@contextmanager
def kept_suspended(pid: int) -> Iterator[None]:
    """However often somebody lets it go on."""
    over = threading.Event()

    def suspend() -> None:
        with suppress(ProcessLookupError):
            while not over.is_set():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.001)

    thread = threading.Thread(target=suspend)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_suspended_agent_stores_its_work_when_it_is_stopped(
    handle: Handle, folders: TaskFolders, tmp_path: Path
) -> None:
    os.kill(agent(folders), signal.SIGSTOP)
    handle.stop()
    handle.delete()
    assert (tmp_path / "workdir" / "out" / "file").read_text() == "done\n"


def test_a_suspended_supervisor_lets_its_machines_go(
    handle: Handle, folders: TaskFolders, tmp_path: Path
) -> None:
    os.kill(supervisor(folders), signal.SIGSTOP)
    handle.delete()
    assert (tmp_path / "workdir" / "out" / "file").read_text() == "done\n"


def test_the_next_supervisor_does_not_wait_for_a_suspended_agent(
    handle: Handle, folders: TaskFolders
) -> None:
    before = handle.machines()[0].id
    os.kill(agent(folders), signal.SIGSTOP)
    os.kill(supervisor(folders), signal.SIGKILL)

    def resumed() -> bool:
        rank = handle.status().ranks[0]
        return rank.state is State.RUNNING and rank.machine != before

    until(resumed)
    handle.delete(fetch=False)


def test_force_ends_an_agent_that_is_kept_suspended(
    handle: Handle, folders: TaskFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "_FORCE_WITHIN", 1.0)
    with kept_suspended(agent(folders)):
        handle.delete(fetch=False, force=True)
    assert not handle.exists()
