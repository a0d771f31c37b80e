"""Strangers are nobody's machine, whatever is in their environment."""

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
from sojourn.clouds.local import make_cloud
from sojourn.clouds.local.locations import Roots
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.host.folders import TaskFolders
from sojourn.host.orphans import agents, kill_strays, strays
from tests.support.processes import marked
from tests.support.waiting import until

MARK = "SOJOURN_MACHINE"
NAP = "import time; time.sleep(300)"


@pytest.fixture
def handle(own_folders: Path) -> Handle:
    made = sojourn.create(Task("#!/bin/sh\nsetsid sleep 300 &\nsleep 300\n"))
    until(lambda: made.status().state is State.RUNNING)
    return made


def folders_of(handle: Handle) -> TaskFolders:
    return TaskFolders(Roots.of().tasks / handle.id)


@pytest.fixture
def machine(handle: Handle) -> str:
    return handle.machines()[0].id


@pytest.fixture
def stranger(
    request: pytest.FixtureRequest, machine: str, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Somebody else's process with our variable, who may even look like an agent."""
    command = [sys.executable, "-c", NAP, *getattr(request, "param", [])]
    started = subprocess.Popen(
        command, env={**os.environ, MARK: machine}, start_new_session=True, cwd=tmp_path
    )
    yield started
    started.kill()
    started.wait()


@pytest.mark.parametrize(
    "stranger", [[], ["-m", "sojourn.agent", "/elsewhere/agent.json"]], indirect=True
)
def test_a_stranger_with_our_variable_is_neither_waited_for_nor_killed(
    handle: Handle, stranger: subprocess.Popen[bytes]
) -> None:
    task = folders_of(handle)
    assert stranger.pid not in agents(task)
    assert stranger.pid not in strays(task)
    handle.delete(fetch=False)
    assert stranger.poll() is None
    assert not handle.exists()


def test_a_stranger_of_another_user_whose_parent_is_gone(handle: Handle, machine: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("starts a process of another user: run the tests as root to enable it")
    started = subprocess.run(
        ["/bin/sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!"],
        env={"PATH": os.environ["PATH"], MARK: machine},
        user=65534,
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    pid = int(started.stdout)
    try:
        assert pid not in strays(folders_of(handle))
        handle.delete(fetch=False)
        os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_lost_its_agent_and_its_supervisor_is_found(handle: Handle, machine: str) -> None:
    task = folders_of(handle)
    until(lambda: len(marked(machine, MARK)) >= 4)  # agent, shell, and two that sleep
    (agent,) = agents(task)
    assert set(strays(task)) == set(marked(machine, MARK))
    scaler = make_cloud("local", {}).scaler(TaskId.parse(handle.id))
    lock = task.supervisor_lock
    os.kill(agent, signal.SIGSTOP)  # else it would end its script when its supervisor is gone
    os.kill(int(lock.read_text().split()[0]), signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    until(lambda: agents(task) == [] and len(strays(task)) == 3)
    kill_strays(task)
    until(lambda: marked(machine, MARK) == [])
    scaler.delete(Context())


@pytest.mark.parametrize("apart", [("DATA", "CACHE"), ("DATA",)])
def test_a_task_of_the_same_name_in_another_data_folder_lives_on(
    own_folders: Path, tmp_path: Path, apart: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same id, which is made of the name alone."""

    def in_own_folders(kind: str) -> None:
        for each in apart:
            monkeypatch.setenv(f"XDG_{each}_HOME", str(tmp_path / kind / each))

    def make() -> Handle:
        made = sojourn.create(Task("#!/bin/sh\nsleep 300\n", name="twin"))
        until(lambda: made.status().state is State.RUNNING)
        return made

    in_own_folders("first")
    first = make()
    before = first.machines()
    in_own_folders("second")
    second = make()
    assert first.id == second.id
    second.delete(fetch=False)
    in_own_folders("first")
    assert first.machines() == before
    assert first.status().ranks[0].attempt == 1
    first.delete(fetch=False)
    assert marked(before[0].id, MARK) == []
