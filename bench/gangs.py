"""Gangs: from the command to the first line of every rank, on local, beside ranks that do not wait
for each other; and from a rank that is lost to all of them running again.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import sojourn

_RANKS = 16
_SCRIPT = "#!/bin/sh\necho running\nexec sleep 1000\n"
_WITHIN = 120.0  # seconds


def main(*, quick: bool = False) -> None:
    ranks, rounds = (4, 1) if quick else (_RANKS, 5)
    print(f"{ranks} ranks on local; seconds, medians")
    with _home():
        alone = statistics.median(_start(ranks, gang=False) for _ in range(rounds))
        together = statistics.median(_start(ranks, gang=True) for _ in range(rounds))
        ratio = together / alone
        print(
            f"  all scripts running: without a gang {alone:.2f}, as a gang {together:.2f}: "
            f"{ratio:.2f}x"
        )
        print(f"  one rank lost, all running again: {_recovery(ranks, rounds):.2f}")


@contextmanager
def _home() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        places = {
            name: str(Path(folder, name))
            for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
        }
        with mock.patch.dict(os.environ, places):
            yield


def _start(ranks: int, *, gang: bool) -> float:
    began = time.monotonic()
    handle = sojourn.create(_task(ranks, gang=gang))
    try:
        _until(lambda: _running(handle) >= ranks)
        return time.monotonic() - began
    finally:
        handle.delete(force=True)


def _recovery(ranks: int, rounds: int) -> float:
    handle = sojourn.create(_task(ranks, gang=True))
    took = []
    try:
        for number in range(1, rounds + 1):
            _until(lambda number=number: _running(handle) >= ranks * number)  # type: ignore[misc]
            began = time.monotonic()
            handle.interrupt(rank=ranks - 1, notice=False)
            _until(lambda number=number: _running(handle) >= ranks * (number + 1))  # type: ignore[misc]
            took.append(time.monotonic() - began)
    finally:
        handle.delete(force=True)
    return statistics.median(took)


def _task(ranks: int, *, gang: bool) -> sojourn.Task:
    return sojourn.Task(_SCRIPT, parallelism=ranks, gang=gang, storage=sojourn.Storage(output=""))


def _running(handle: sojourn.Handle) -> int:
    return sum(line.text == "running" for line in handle.logs(follow=False))


def _until(happened: Callable[[], object]) -> None:
    give_up = time.monotonic() + _WITHIN
    while not happened():
        if time.monotonic() > give_up:
            raise SystemExit("it took too long")
        time.sleep(0.05)
