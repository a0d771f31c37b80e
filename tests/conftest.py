"""Fixtures that more than one folder of tests needs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

import sojourn
from tests.support.seaweed import Seaweed

# How long an example takes says something of the computer, and nothing of the code.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_configure() -> None:
    """With nohup, or in the background of a script, signals are ignored, here and in all that is
    started from here; tests send some."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests leave nothing in the state folder of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def seaweed() -> Iterator[Seaweed]:
    """A real S3 server; each worker of pytest-xdist that needs one starts its own."""
    with Seaweed() as server:
        yield server


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
