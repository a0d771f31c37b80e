"""Nobody but the shell itself knows what is in its environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sojourn
from sojourn import State, Task
from tests.support.processes import marked
from tests.support.waiting import until


def _environments(data: Path) -> list[dict[str, str]]:
    """Of supervisor and agent, which know where the data is, and of the script."""
    pids = [*marked(str(data), "XDG_DATA_HOME"), *marked("here", "TASK_HAS")]
    texts = [Path(f"/proc/{pid}/environ").read_bytes() for pid in pids if pid != os.getpid()]
    return [dict(os.fsdecode(v).split("=", 1) for v in t.split(b"\0") if v) for t in texts]


def test_secrets_of_the_shell_stay_there(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("MY_PASSWORD", "hunter2")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    data = own_folders.parents[1]
    handle = sojourn.create(Task("#!/bin/sh\nsleep 300\n", environment={"TASK_HAS": "here"}))
    until(lambda: handle.status().state is State.RUNNING)
    until(lambda: len(_environments(data)) >= 4)  # supervisor, agent, the shell and its sleep
    found = _environments(data)
    handle.delete(fetch=False)
    assert not [name for seen in found for name, value in seen.items() if "hunter2" in value]
    ours = [seen for seen in found if "XDG_DATA_HOME" in seen]
    assert [seen["LC_ALL"] for seen in ours] == ["C.UTF-8", "C.UTF-8"]
    assert [name for seen in ours for name in seen if name.startswith(("AWS_", "MY_"))] == []
