"""Processes that outlive the command that starts them, and that a later command stops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.kube import layout, places
from tests.support.processes import marked

__all__ = ["MARK", "alive", "log", "pid_of", "recorded", "start", "stop", "stop_all"]

MARK = "SOJOURN_TEST_KUBE_STATE"  # in the environment of all of them: the folder of their cluster
_GONE_WITHIN = 20.0


def start(name: str, command: Sequence[str | Path]) -> int:
    """Start it in the background and note which process it is; its output goes to its log."""
    log(name).parent.mkdir(parents=True, exist_ok=True)
    _record(name).parent.mkdir(parents=True, exist_ok=True)
    with log(name).open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, MARK: str(layout.STATE)},
            cwd=places.SOURCES.parents[1],
        )
    process.returncode = 0  # nobody here waits for it
    record = {"pid": process.pid, "started": _started(process.pid)}
    _record(name).write_text(json.dumps(record))
    return process.pid


def stop(name: str, how: signal.Signals = signal.SIGKILL) -> None:
    """Return when it is gone. A process that only has its number now is left alone."""
    pid = pid_of(name)
    if pid is not None:
        with suppress(ProcessLookupError):
            os.kill(pid, how)
        give_up = time.monotonic() + _GONE_WITHIN
        while pid_of(name) is not None:
            if time.monotonic() > give_up:
                raise RuntimeError(f"Could not stop {name} (process {pid})")
            time.sleep(0.02)
        with suppress(ChildProcessError):  # another command may have started it
            os.waitpid(pid, 0)
    _record(name).unlink(missing_ok=True)


def pid_of(name: str) -> int | None:
    """Its number, while it runs."""
    try:
        record = json.loads(_record(name).read_text())
    except (FileNotFoundError, ValueError):
        return None
    pid = int(record["pid"])
    return pid if record["started"] is not None and _started(pid) == record["started"] else None


def alive(name: str) -> bool:
    return pid_of(name) is not None


def recorded() -> list[str]:
    return sorted(path.stem for path in _record("any").parent.glob("*.json"))


def stop_all() -> None:
    """Also those that could not be noted, as the command that started them crashed."""
    for name in recorded():
        stop(name)
    for pid in marked(str(layout.STATE), MARK):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def log(name: str) -> Path:
    return layout.STATE / "logs" / f"{name}.log"


def _record(name: str) -> Path:
    return layout.STATE / "processes" / f"{name}.json"


def _started(pid: int) -> str | None:
    """When it started, in the kernel's words: with its number, this is unique until a reboot.

    So the boot is part of it. A zombie has no files left, and counts as gone.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None if fields[0] in "ZX" else f"{fields[19]} since {boot}"
