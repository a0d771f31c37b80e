"""What other users of the computer get to see of a task: nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn
from sojourn import State, Storage, Task
from tests.support.waiting import until

_FOLDERS = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")


@pytest.fixture
def open_mask() -> Iterator[None]:
    """Files are made for everybody, unless their maker says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def _open_to_all(folder: Path) -> Iterator[Path]:
    """The files that another user gets at."""
    for path in folder.iterdir():
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        if path.is_dir():
            if mode & 0o077:
                yield from _open_to_all(path)
        elif mode & 0o077:
            yield path


@pytest.mark.usefixtures("own_folders", "open_mask")
def test_files_of_a_task_are_its_users_alone(tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (workdir / "data").write_text("private")
    task = Task(
        "#!/bin/sh\necho up; touch new; sleep 300\n",
        environment={"TOKEN": "secret"},
        storage=Storage(workdir=str(workdir), output="."),
    )
    handle = sojourn.create(task)
    until(lambda: handle.status().state is State.RUNNING)
    until(lambda: [line.text for line in handle.logs()] == ["up"])
    folders = [Path(os.environ[name]) / "sojourn" for name in _FOLDERS]
    try:
        assert all(any(folder.rglob("*")) for folder in folders)
        assert [path for folder in folders for path in _open_to_all(folder)] == []
    finally:
        handle.delete(fetch=False)
    assert [*_open_to_all(folders[-1])] == []  # the saved log
