"""Waiting for something that happens elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

SLOWER = 1.0  # how many times longer everything takes, as on a real cloud


def until(happened: Callable[[], object], seconds: float = 30) -> None:
    """Return as soon as it has happened; fail if that takes too long."""
    give_up = time.monotonic() + seconds * SLOWER
    while not happened():
        assert time.monotonic() < give_up, "it did not happen in time"
        time.sleep(0.05)
