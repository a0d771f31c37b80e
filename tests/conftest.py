"""Fixtures that more than one folder of tests needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.seaweed import Seaweed


@pytest.fixture(scope="session")
def seaweed() -> Iterator[Seaweed]:
    """A real S3 server; each worker of pytest-xdist that needs one starts its own."""
    with Seaweed() as server:
        yield server
