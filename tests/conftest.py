"""Fixtures that more than one folder of tests needs."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.support.seaweed import Seaweed


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
