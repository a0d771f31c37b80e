"""Waiting for something that happens elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

__all__ = ["SLOWER", "patience", "until"]

SLOWER = 1.0  # how many times longer everything takes, as on a real cloud
_CORES = os.cpu_count() or 1


def patience(seconds: float) -> float:
    """How long to wait, at most, for what takes no longer than this on a quiet machine."""
    return seconds * SLOWER * max(1.0, os.getloadavg()[0] / _CORES)


def until(happened: Callable[[], object], seconds: float = 30) -> None:
    """Return as soon as it has happened; fail if that takes too long."""
    start = time.monotonic()
    while not happened():
        # Asked for each time: the load may have come since.
        assert time.monotonic() < start + patience(seconds), "it did not happen in time"
        time.sleep(0.05)
