"""Kubernetes, on the cluster for tests: tasks beside `kubectl create job`, transfers beside
`kubectl cp`, recovery, and what the agent takes at rest.

Needs `make kube` and kubectl. Both sides use the same image, in turn.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import sojourn
from bench.cluster import kubectl, namespace
from bench.trees import make_large, make_small, rewrite_one
from sojourn.core.context import Context
from sojourn.core.filters import Filters
from sojourn.core.ids import TaskId
from sojourn.kube.api import Api

_SOJOURN = Path(sys.executable).with_name("sojourn")
_RUN_RATIO = 1.5
_RECOVERY = 2.0  # seconds that are ours


def main(*, quick: bool = False) -> None:
    from tests.kube import images, prerequisites

    reason = prerequisites.unavailable()
    if not shutil.which("kubectl") or reason:
        print(f"Skipped: {reason or 'kubectl is not installed'}")
        return
    with namespace() as (api, home):
        print("`sojourn run -- true` beside `kubectl create job`, wait, logs, delete; seconds")
        _runs(images.PYTHON, rounds=1 if quick else 7)
        print("\nUploads and downloads beside `kubectl cp`; seconds, medians")
        _transfers(api, images.PYTHON, home, quick=quick)
        print("\nFrom a killed pod to the script running again")
        _recovery(api, images.PYTHON, rounds=1 if quick else 5)
        print("\nThe agent's container while the script does nothing")
        _at_rest(images.PYTHON, home, seconds=10 if quick else 60)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _runs(image: str, rounds: int) -> None:
    def theirs() -> None:
        kubectl("create", "job", "it", f"--image={image}", "--", "true")
        kubectl("wait", "--for=condition=complete", "job/it", "--timeout=120s")
        kubectl("logs", "job/it")
        kubectl("delete", "job", "it")

    def ours() -> None:
        command = [str(_SOJOURN), "run", "--cloud", "k8s", "--machine", "s", "--image", image]
        subprocess.run([*command, "--", "true"], check=True, capture_output=True)

    times: dict[str, list[float]] = {"kubectl": [], "sojourn": []}
    for _ in range(rounds):
        times["kubectl"].append(_seconds(theirs))
        times["sojourn"].append(_seconds(ours))
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratio = medians["sojourn"] / medians["kubectl"]
    print(f"  kubectl {medians['kubectl']:.2f}, sojourn {medians['sojourn']:.2f}: {ratio:.2f}x")
    print(f"  bar: at most {_RUN_RATIO}x: {'met' if ratio <= _RUN_RATIO else 'NOT met'}")


def _transfers(api: Api, image: str, home: Path, *, quick: bool) -> None:
    count, size = (500, 32 << 20) if quick else (10_000, 1 << 30)
    for name, folder in (
        (f"{count:,} x 10 KiB", make_small(home / "many", count, 10 << 10)),
        (f"{size >> 20:,} MiB", make_large(home / "large", size)),
    ):
        with _task(image, home) as (handle, pod):
            up = _seconds(partial(kubectl, *_COPY, str(folder), f"{pod}:/tmp/up"))
            _tell(f"{name}, up", up, _seconds(_push(handle, folder)))
            _tell(f"{name}, nothing changed", up, _seconds(_push(handle, folder)))
            if folder.name == "many":
                rewrite_one(folder)
                _tell(f"{name}, one file changed", up, _seconds(_push(handle, folder)))
            down = _seconds(partial(kubectl, *_COPY, f"{pod}:/tmp/up", str(home / "theirs")))
            ours = _seconds(partial(handle.pull, home / "ours"))
            _tell(f"{name}, down", down, ours)
            for made in ("theirs", "ours"):
                shutil.rmtree(home / made)


_COPY = ("cp", "-c", "script")


def _tell(name: str, theirs: float, ours: float) -> None:
    print(f"  {name}: kubectl cp {theirs:.2f}, sojourn {ours:.2f}: {theirs / ours:.1f}x")


@contextmanager
def _task(image: str, home: Path) -> Iterator[tuple[sojourn.Handle, str]]:
    """One that waits, with nothing in its workdir yet."""
    (home / "empty").mkdir(exist_ok=True)
    storage = sojourn.Storage(workdir=str(home / "empty"), output=".")
    handle = sojourn.create(
        sojourn.Task(
            "#!/bin/sh\necho up\nsleep 3000",
            cloud="k8s",
            machine="s",
            image=image,
            disk_size=20,
            storage=storage,
        )
    )
    while "up" not in [line.text for line in handle.logs()]:
        time.sleep(0.2)
    try:
        yield handle, handle.status().ranks[0].machine
    finally:
        handle.delete(force=True, fetch=False)


def _push(handle: sojourn.Handle, folder: Path) -> Callable[[], None]:
    """As a creation does it; a rank that has stored nothing has what was pushed last."""
    from sojourn.clouds.k8s.cloud import KubernetesCloud

    data = KubernetesCloud().data(TaskId.parse(handle.id))
    return lambda: data.push(Context(), folder, Filters(), None)


def _recovery(api: Api, image: str, rounds: int) -> None:
    script = "#!/bin/sh\necho up $SOJOURN_ATTEMPT $(date +%s.%N)\nsleep 3000"
    handle = sojourn.create(sojourn.Task(script, cloud="k8s", machine="s", image=image))

    def up(attempt: int) -> float:
        while True:
            for line in handle.logs():
                words = line.text.split()
                if words[:2] == ["up", str(attempt)]:
                    return float(words[2])
            time.sleep(0.1)

    whole, own = [], []
    for attempt in range(1, rounds + 1):
        up(attempt)
        began = time.time()
        api.delete("Pod", handle.status().ranks[0].machine, grace=0)
        again = up(attempt + 1)
        pod = api.get("Pod", handle.status().ranks[0].machine)
        started = max(
            item["state"]["running"]["startedAt"] for item in pod["status"]["containerStatuses"]
        )
        whole.append(again - began)
        own.append(again - _epoch(started))
    handle.delete(force=True, fetch=False)
    ours = statistics.median(own)
    print(
        f"  {statistics.median(whole):.1f} s in all; from the start of the last container "
        f"{ours:.1f} s, to the second"
    )
    print(f"  bar: ours under {_RECOVERY} s: {'met' if ours < _RECOVERY else 'NOT met'}")


def _at_rest(image: str, home: Path, seconds: float) -> None:
    """The nodes are on this computer, so the agent is one of its processes."""
    with _task(image, home) as (_, machine):
        time.sleep(10)  # until it has nothing more to do for the start
        agent = _agent_of(machine)
        before = _used(agent)
        time.sleep(seconds)
        share = (_used(agent) - before) / seconds * 100
        pages = sum(int((each / "statm").read_text().split()[1]) for each in agent)
        memory = pages * os.sysconf("SC_PAGE_SIZE")
    print(f"  {memory / 2**20:.0f} MiB of memory, {share:.2f} % of a core")


def _agent_of(machine: str) -> list[Path]:
    """A shell and the program that it started."""
    found = []
    mark = f"SOJOURN_MACHINE={machine}\0".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            life = b"on_machine.life" in (process / "cmdline").read_bytes()
            if life and mark in (process / "environ").read_bytes():
                found.append(process)
    assert found, f"{machine} has no agent here"
    return found


def _used(processes: list[Path]) -> float:
    fields = [(each / "stat").read_text().rpartition(")")[2].split() for each in processes]
    ticks = sum(int(field) for each in fields for field in each[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _epoch(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
