"""Systems without /proc, such as macOS: psutil tells whose a pid is now."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State, Task
from sojourn.clouds.local.locations import Roots
from sojourn.core.ids import TaskId
from sojourn.host import orphans
from sojourn.host.exec_sessions import add_guest, kill_guests
from sojourn.host.folders import TaskFolders
from sojourn.host.identity import Supervised
from tests.support.waiting import until

_NAP = "import time; time.sleep(300)"


@pytest.fixture(autouse=True)
def no_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphans, "_PROC", "/nowhere")


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A stranger's process, with a pid that was somebody else's."""
    started = subprocess.Popen([sys.executable, "-c", _NAP], start_new_session=True)
    yield started
    started.kill()
    started.wait()


def test_an_agent_is_known_by_its_command_line(
    other: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _NAP, "/x/machine-1/agent.json"]
    with subprocess.Popen(command) as agent:
        until(lambda: orphans.is_agent(agent.pid, "machine-1"))
        assert not orphans.is_agent(agent.pid, "machine-2")
        assert not orphans.is_agent(other.pid, "machine-1")
        assert orphans.lives(agent.pid)
        os.kill(agent.pid, signal.SIGSTOP)
        until(lambda: orphans.is_suspended(agent.pid))
        agent.kill()
        until(lambda: not orphans.lives(agent.pid))  # though nobody has buried it
    assert not orphans.is_agent(agent.pid, "machine-1")
    assert not orphans.lives(agent.pid)
    assert orphans.began(agent.pid) == ""
    assert orphans.began(os.getpid()) == orphans.began(os.getpid()) != orphans.began(other.pid)
    assert (orphans.environment(os.getpid()) or {}).keys() >= {"PATH"}


def test_a_pid_that_is_used_again_gets_no_signal(
    own_folders: Path, other: subprocess.Popen[bytes]
) -> None:
    handle: Handle = sojourn.create(Task("#!/bin/sh\nsleep 300\n"))
    until(lambda: handle.status().state is State.RUNNING)
    folders = TaskFolders(Roots.of().tasks / handle.id)
    supervisor = Supervised.parse(folders.supervisor_lock.read_text()).pid
    assert supervisor
    assert orphans.is_supervisor(supervisor, folders)
    assert not orphans.is_supervisor(other.pid, folders)
    assert len(handle.machines()) == 1
    rows = folders.machines.read_text()
    pid = next(word for word in rows.replace('"', " ").split() if word.isdecimal())
    folders.machines.write_text(rows.replace(pid, str(other.pid)))
    assert handle.machines() == []
    folders.machines.write_text(rows)
    handle.delete(fetch=False)
    assert other.poll() is None


def test_a_command_whose_pid_is_used_again_is_left_alone(
    other: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    add_guest(machine, other.pid)
    (entry,) = (path for path in machine.rglob(str(other.pid)))
    entry.write_text("another time")
    kill_guests(TaskFolders(tmp_path / str(TaskId.random())), machine)
    assert other.poll() is None
