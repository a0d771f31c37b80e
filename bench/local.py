"""The local cloud: how long each phase of a run takes, how fresh a followed log is, how soon a
script runs again after its machine was taken away.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import sojourn


def main(*, quick: bool = False) -> None:
    with _account():
        _phases(3 if quick else 10)
        _freshness(10 if quick else 60)
        _recovery(1 if quick else 5)


@contextmanager
def _account() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[name] = folder
        yield


def _phases(rounds: int) -> None:
    marks: dict[str, list[float]] = {}
    for _ in range(rounds):
        began = time.perf_counter()
        text = subprocess.run(
            [sys.executable, "-m", "bench.stamped"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "BENCH_BEGAN": str(time.time())},
        ).stdout
        marks.setdefault("everything", []).append(time.perf_counter() - began)
        for line in text.splitlines():
            name, seconds = line.rsplit(" ", 1)
            marks.setdefault(name, []).append(float(seconds))
    print("`sojourn run -- true`, seconds from the start of the command, medians")
    for name, values in sorted(marks.items(), key=lambda item: statistics.median(item[1])):
        print(f"  {name:<38} {statistics.median(values):6.2f}")
    _bar("everything", statistics.median(marks["everything"]), 1.0)
    _bar("the script's first line", statistics.median(marks["the script runs"]), 0.5)


def _freshness(lines: int) -> None:
    """From the moment that a line is printed to the moment that a follower has it."""
    script = f"#!/bin/bash\nfor i in $(seq {lines}); do date +%s.%N; sleep 0.25; done\n"
    handle = sojourn.create(sojourn.Task(script))
    delays = [time.time() - float(line.text) for line in handle.logs(follow=True) if line.text]
    handle.delete()
    delays.sort()
    print("From a line printed to a line shown while following, seconds")
    print(f"  median {statistics.median(delays):.2f}, largest {delays[-1]:.2f}")
    _bar("95 of 100", delays[int(len(delays) * 0.95) - 1], 1.0)


def _recovery(rounds: int) -> None:
    """From the loss of a machine, without notice, to the script running again."""
    script = "#!/bin/bash\nmkdir -p out; echo $SOJOURN_ATTEMPT > out/attempt; echo up; sleep 600\n"
    task = sojourn.Task(script, storage=sojourn.Storage(output="out"))
    handle = sojourn.create(task)
    times = []
    for attempt in range(1, rounds + 1):
        _until(lambda attempt=attempt: _first_line(handle, attempt))  # type: ignore[misc]
        time.sleep(6)  # long enough not to be taken for a machine that cannot live
        lost = datetime.now(timezone.utc)
        handle.interrupt(notice=False)
        _until(lambda attempt=attempt: _first_line(handle, attempt + 1))  # type: ignore[misc]
        times.append((_first_line(handle, attempt + 1) or lost) - lost)
    handle.delete(fetch=False)
    print("From the loss of a machine to the script running again")
    _bar("median", statistics.median(seconds.total_seconds() for seconds in times), 2.0)


def _first_line(handle: sojourn.Handle, attempt: int) -> datetime | None:
    for line in handle.logs(attempt=attempt):
        return datetime.fromisoformat(line.time.replace("Z", "+00:00"))
    return None


def _until(happened: Callable[[], object]) -> None:
    give_up = time.monotonic() + 60
    while not happened():
        if time.monotonic() > give_up:
            raise SystemExit("it did not happen within a minute")
        time.sleep(0.02)


def _bar(name: str, seconds: float, bar: float) -> None:
    verdict = "met" if seconds < bar else "NOT met"
    print(f"  {name}: {seconds:.2f} s; aim: under {bar} s: {verdict}")
