"""A list reads files, and leaves out what needs a closer look."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State, Task, api
from sojourn.clouds.local import make_cloud
from sojourn.core.context import Context
from sojourn.core.ids import TaskId
from sojourn.core.status import Status
from sojourn.host.files import read_lock
from sojourn.host.folders import TaskFolders
from tests.support.waiting import until


def glance(handle: Handle) -> Status | None:
    task = TaskId.parse(handle.id)
    return make_cloud("local", {}).states(Context(), [task]).get(task)


@pytest.fixture
def ended(own_folders: Path) -> Handle:
    handle = sojourn.create(Task("#!/bin/sh\nexit $((SOJOURN_RANK * 3))\n", parallelism=2))
    handle.wait()
    until(lambda: not read_lock(folders(handle).supervisor_lock)[0])  # nobody writes any more
    return handle


@pytest.fixture
def running(own_folders: Path) -> Handle:
    handle = sojourn.create(Task("#!/bin/sh\nsleep 300\n"))
    until(lambda: handle.status().state is State.RUNNING)
    return handle


def folders(handle: Handle) -> TaskFolders:
    return TaskFolders(Path(os.environ["XDG_DATA_HOME"]) / "sojourn" / "local" / handle.id)


def test_what_has_ended(ended: Handle) -> None:
    assert glance(ended) == ended.status()


def test_what_runs(running: Handle) -> None:
    assert glance(running) == running.status()


def test_what_is_stopped(running: Handle) -> None:
    running.stop()
    until(lambda: glance(running))  # its supervisor ends in a moment
    seen = glance(running)
    assert seen == running.status()
    assert seen
    assert seen.state is State.STOPPED


def test_who_lost_the_supervisor_is_looked_at_closer(running: Handle) -> None:
    before = running.machines()[0].id
    os.kill(int(folders(running).supervisor_lock.read_text().split()[0]), signal.SIGKILL)
    until(lambda: glance(running) is None)
    api.overview()  # starts another one
    until(lambda: running.machines() and running.machines()[0].id != before)


@pytest.mark.parametrize(
    "damaged",
    ["store/task.json", "store/reports/0000/000001", "store/attempts/0000/000001"],
)
def test_what_is_damaged_is_looked_at_closer(ended: Handle, damaged: str) -> None:
    (folders(ended).root / damaged).write_text("{")
    assert glance(ended) is None


@pytest.mark.parametrize("missing", ["store", "scaler"])
def test_what_is_not_complete_is_looked_at_closer(ended: Handle, missing: str) -> None:
    shutil.rmtree(folders(ended).root / missing)
    assert glance(ended) is None


def test_what_lost_its_settings_is_looked_at_closer_and_can_be_deleted(ended: Handle) -> None:
    folders(ended).settings.unlink()
    assert glance(ended) is None
    ended.delete(fetch=False)
    assert not ended.exists()


def test_a_list_opens_no_store(ended: Handle, running: Handle) -> None:
    code = (
        "import sys, sojourn.api\n"
        "print(*(f'{h.id}={s.state}' for h, s in sojourn.api.overview()))\n"
        "print('obstore' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert set(said[0].split()) == {f"{ended.id}=failed", f"{running.id}=running"}
    assert said[1] == "False"
