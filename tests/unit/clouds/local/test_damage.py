"""A task that is damaged on the disk stands in no other's way, and can be removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.core.errors import IntegrityError
from sojourn.host.files import write_whole
from tests.support.waiting import until

DAMAGES = {"empty": b"", "torn": b'{"format": 1, "ta', "other": b"[]", "binary": b"\xff\0"}


@pytest.fixture
def tasks(own_folders: Path) -> tuple[Handle, Handle]:
    """One that will be damaged, and another."""
    one, other = (
        sojourn.create(sojourn.Task("#!/bin/sh\n", name=name)) for name in ("broken", "other")
    )
    for handle in (one, other):
        handle.wait()
    return one, other


def _list() -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "sojourn.cli", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_task(tasks: tuple[Handle, Handle], own_folders: Path, damage: bytes) -> None:
    one, other = tasks
    file = own_folders / one.id / "store/task.json"
    file.write_bytes(damage)
    assert [handle.id for handle in sojourn.list_tasks()] == [one.id, other.id]
    assert other.status().state is State.SUCCEEDED
    assert [handle.id for handle, _ in sojourn.gc()] == [other.id]
    with pytest.raises(IntegrityError) as caught:
        one.status()
    assert "--force" in caught.value.hint
    with pytest.raises(IntegrityError):
        one.delete()
    assert file.read_bytes() == damage
    one.delete(force=True)
    assert not (own_folders / one.id).exists()
    assert [handle.id for handle in sojourn.list_tasks()] == [other.id]


def test_the_command_line_lists_the_others_as_well(
    tasks: tuple[Handle, Handle], own_folders: Path
) -> None:
    one, other = tasks
    (own_folders / one.id / "store/task.json").write_bytes(b"")
    rows = {row["id"]: row for row in _list()}
    assert rows[other.id]["state"] == "succeeded"
    assert "damaged" in rows[one.id]["reason"]


@pytest.mark.parametrize("folder", ["reports", "attempts"])
def test_a_damaged_report_or_lease(
    tasks: tuple[Handle, Handle], own_folders: Path, folder: str
) -> None:
    one, other = tasks
    for path in (own_folders / one.id / "store" / folder).rglob("*"):
        if path.is_file():
            path.write_bytes(b"")
    assert {row["id"] for row in _list()} == {one.id, other.id}
    stopped = subprocess.run(
        [sys.executable, "-m", "sojourn", "stop", one.id], capture_output=True, text=True
    )
    assert stopped.returncode == 0
    assert "Warning: Could not read the state" in stopped.stderr
    one.delete()
    assert not (own_folders / one.id).exists()


@pytest.mark.parametrize("damage", [*DAMAGES.values(), b"[1]", b'[{"id": "x"}]', b"7e", b"\0\0"])
@pytest.mark.parametrize("file", ["wanted", "machines.json", "settings.json", "supervisor.lock"])
def test_damaged_files_of_a_scaler(
    tasks: tuple[Handle, Handle], own_folders: Path, file: str, damage: bytes
) -> None:
    one, other = tasks
    (own_folders / one.id / "scaler" / file).write_bytes(damage)
    assert [handle.status().state for handle in (one, other)] == [State.SUCCEEDED] * 2
    one.delete()
    assert not (own_folders / one.id).exists()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_was_to_run_when_the_power_was_cut_is_started_again(
    own_folders: Path, damage: bytes
) -> None:
    handle = sojourn.create(sojourn.Task("#!/bin/sh\nsleep 300\n"))
    until(lambda: handle.status().state is State.RUNNING)
    scaler = own_folders / handle.id / "scaler"
    os.kill(int((scaler / "supervisor.lock").read_text().split()[0]), signal.SIGKILL)
    (scaler / "wanted").write_bytes(damage)
    assert handle.status().state is State.STOPPED
    handle.start()
    until(lambda: handle.status().state is State.RUNNING)


def test_a_text_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    seen: list[tuple[int, bool]] = []
    monkeypatch.setattr(
        os, "fsync", lambda file: seen.append((os.fstat(file).st_size, path.exists()))
    )
    write_whole(path, "text")
    assert seen == [(4, False)]
    assert path.read_text() == "text"
