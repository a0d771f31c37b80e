from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import sojourn


@pytest.fixture
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folders of the local cloud that start out empty; gives that of the tasks."""
    for name in [name for name in os.environ if name.startswith(("CI", "GITHUB_", "TPI_"))]:
        monkeypatch.delenv(name)
    for variable, name in (
        ("XDG_DATA_HOME", "data"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_STATE_HOME", "state"),
    ):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    yield tmp_path / "data" / "sojourn" / "local"
    for handle in sojourn.list_tasks():
        handle.delete(fetch=False, force=True)
    assert list((tmp_path / "data").iterdir()) == []
