"""How many machines are wanted, when some end and others are asked for at once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import sojourn
from sojourn import State, Task
from sojourn.core.context import Context
from sojourn.host.desired_count import Want, Wanted
from sojourn.host.folders import TaskFolders
from tests.support.waiting import until

CTX = Context()


@pytest.fixture
def folders(tmp_path: Path) -> TaskFolders:
    made = TaskFolders(tmp_path)
    made.scaler.mkdir()
    return made


def test_machines_that_have_ended_are_wanted_no_more(folders: TaskFolders) -> None:
    wanted = Wanted(folders)
    wanted.set(3)
    generation = wanted.read().generation
    wanted.subtract([generation])
    assert wanted.read() == Want(2, generation)
    wanted.subtract([generation] * 9)
    assert wanted.read() == Want()


def test_those_of_a_former_request_are_not_subtracted(folders: TaskFolders) -> None:
    wanted = Wanted(folders)
    wanted.set(2)
    former = wanted.read().generation
    wanted.set(0)
    wanted.set(1)
    wanted.subtract([former])
    assert wanted.read().machines == 1


def test_the_same_request_changes_nothing(folders: TaskFolders) -> None:
    wanted = Wanted(folders)
    wanted.set(2)
    before = wanted.read()
    wanted.set(2)
    assert wanted.read() == before


def test_a_file_of_the_former_version(folders: TaskFolders) -> None:
    folders.wanted.write_text("2")
    assert Wanted(folders).read() == Want(2)
    Wanted(folders).subtract([""])
    assert folders.wanted.read_text() == "1"


def test_a_start_is_not_eaten_by_a_machine_that_ended_before(
    own_folders: Path, tmp_path: Path
) -> None:
    script = f"#!/bin/sh\nwhile [ ! -e {tmp_path}/end$SOJOURN_RANK ]; do sleep 0.05; done\n"
    handle = sojourn.create(Task(script, parallelism=2))
    until(lambda: handle.status().counts["running"] == 2)
    scaler = own_folders / handle.id / "scaler"
    supervisor = int((scaler / "supervisor.lock").read_text().split()[0])
    os.kill(supervisor, signal.SIGSTOP)
    try:
        (tmp_path / "end0").touch()
        until(lambda: handle.status().counts["succeeded"] == 1)
        Wanted(TaskFolders(own_folders / handle.id)).set(0)  # seen by nobody
        handle.start()
    finally:
        os.kill(supervisor, signal.SIGCONT)
    until(lambda: "machine-ended" in (scaler / "events.jsonl").read_text())
    assert handle.status().counts["running"] == 1
    (tmp_path / "end1").touch()
    assert handle.wait().status is State.SUCCEEDED
    until(lambda: (scaler / "wanted").read_text() == "0")
