"""The local cloud: how long each phase of a run takes, how fresh a followed log is, how soon a
script runs again after its machine was taken away, what an idle task costs, how long a list takes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

import sojourn
from sojourn.core.ids import TaskId


def main(*, quick: bool = False) -> None:
    with _account():
        _phases(3 if quick else 10)
        _freshness(10 if quick else 60)
        _recovery(1 if quick else 5)
        _idle(5 if quick else 60)
        _listing(20 if quick else 200)


@contextmanager
def _account() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[name] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has been compiled
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
    _bar("everything", statistics.median(marks["everything"]), 0.4)
    _bar("the script's first line", statistics.median(marks["the script runs"]), 0.3)


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


def _idle(seconds: float) -> None:
    """The processor time of a task whose script sleeps and which nobody follows."""
    handle = sojourn.create(sojourn.Task("#!/bin/sh\nsleep 600\n"))
    _until(lambda: handle.status().counts["running"])
    time.sleep(10)  # until it looks for changes as seldom as it ever does
    ours = _processes(handle.id)
    before = _spent(ours)
    time.sleep(seconds)
    share = (_spent(ours) - before) / seconds * 100
    handle.delete(fetch=False, force=True)
    print("An idle task: its supervisor and its agent, of one core")
    print(f"  {share:.3f} %; aim: under 0.1 %: {'met' if share < 0.1 else 'NOT met'}")


def _processes(task: str) -> list[str]:
    """Supervisor and agent: both are started with the name of the task."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"\0sojourn." in command and task.encode() in command:
                found.append(process.name)
    return found


def _spent(pids: list[str]) -> float:
    """Seconds, of all threads, finer than the ticks of `stat`."""
    files = [path for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(path.read_text().split()[0]) for path in files) / 1e9


def _listing(count: int) -> None:
    """`sojourn list` of many tasks that have ended; copies of one, as a list does not mind."""
    handle = sojourn.create(sojourn.Task("#!/bin/sh\nexit 3\n"))
    handle.wait()
    folder = Path(os.environ["XDG_DATA_HOME"]) / "sojourn" / "local"
    for _ in range(count - 1):
        shutil.copytree(folder / handle.id, folder / str(TaskId.random()))
    command = [str(Path(sysconfig.get_path("scripts")) / "sojourn"), "list"]
    times = []
    for _ in range(5):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - began)
    rows = [line for line in done.stdout.splitlines() if " failed " in line]
    if len(rows) != count:
        raise SystemExit(f"{len(rows)} of {count} tasks were listed")
    shutil.rmtree(folder)
    print(f"`sojourn list` of {count} tasks")
    _bar("median", statistics.median(times), 0.5)


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
