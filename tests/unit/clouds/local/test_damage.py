"""A task that is damaged in the store stands in no other's way, and can be removed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sojourn
from sojourn import Handle, State
from sojourn.core.errors import IntegrityError

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
    one.delete(force=True)
    assert not (own_folders / one.id).exists()
