"""What filled the disk can be stopped and deleted."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import sojourn
from sojourn import Handle, State, Task
from sojourn.host import desired_count
from sojourn.host.desired_count import Wanted
from sojourn.host.folders import TaskFolders
from tests.support.disks import small_disk
from tests.support.waiting import until


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "8m") as disk:
        monkeypatch.setenv("XDG_DATA_HOME", str(disk / "data"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(disk / "cache"))
        yield disk


@pytest.fixture
def full(disk: Path) -> Iterator[Handle]:
    """A task at work on a disk that was filled up meanwhile."""
    handle = sojourn.create(Task("#!/bin/sh\nsleep 300\n"))
    until(lambda: handle.status().state is State.RUNNING)
    with suppress(OSError), open(disk / "filling", "wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))
    yield handle
    (disk / "filling").unlink()
    sojourn.gc()


def test_deletion(full: Handle, disk: Path) -> None:
    full.delete(fetch=False, force=True)
    assert not list(disk.rglob(f"{full.id}*"))


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_none_is_wanted_without_any_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    folders = TaskFolders(tmp_path)
    folders.scaler.mkdir()
    Wanted(folders).set(2)

    def full(path: Path, text: str) -> None:
        raise OSError(error, "full")

    monkeypatch.setattr(desired_count, "write_whole", full)
    with pytest.raises(OSError, match="full"):
        Wanted(folders).set(3)
    assert Wanted(folders).read().machines == 2
    Wanted(folders).set(0)
    assert Wanted(folders).read().machines == 0


def test_other_errors_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = TaskFolders(tmp_path)
    folders.scaler.mkdir()
    Wanted(folders).set(2)

    def broken(path: Path, text: str) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(desired_count, "write_whole", broken)
    with pytest.raises(OSError, match="broken"):
        Wanted(folders).set(0)
    assert Wanted(folders).read().machines == 2
