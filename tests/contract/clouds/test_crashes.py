"""The laptop's side is killed at every step; repeating converges, deleting leaves nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import sojourn
from sojourn.core.errors import NotFound
from tests.contract.clouds.lab import Lab

CRASHING = """
import os, signal, sys
import sojourn

verb, cloud, workdir, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
seen = 0

def on_event(event):
    global seen
    if type(event).__name__ in ("StepStarted", "StepEnded"):
        seen += 1
        if seen == count:
            os.kill(os.getpid(), signal.SIGKILL)

task = sojourn.Task(
    "#!/bin/sh\\nmkdir -p output; echo result > output/file",
    cloud=cloud,
    name="crash",
    storage=sojourn.Storage(workdir=workdir, output="output"),
)
if verb == "create":
    sojourn.create(task, on_event=on_event)
else:
    getattr(sojourn.get("tpi-crash", on_event=on_event), verb)()
"""


def crash(lab: Lab, verb: str, count: int) -> bool:
    """Do it and be killed at the given event; False if there are not so many."""
    arguments = [verb, lab.kit.cloud, str(lab.workdir), str(count)]
    code = subprocess.run([sys.executable, "-c", CRASHING, *arguments], check=False).returncode
    assert code in (0, -signal.SIGKILL)
    return code != 0


def task(lab: Lab) -> sojourn.Task:
    return sojourn.Task(
        "#!/bin/sh\nmkdir -p output; echo result > output/file",
        cloud=lab.kit.cloud,
        name="crash",
        storage=sojourn.Storage(workdir=str(lab.workdir), output="output"),
    )


STEPS = range(1, 13)


@pytest.mark.parametrize("count", STEPS)
def test_create_again_after_a_crash(lab: Lab, count: int) -> None:
    (lab.workdir / "data").write_text("data")
    crashed = crash(lab, "create", count)
    handle = sojourn.create(task(lab))
    assert handle.wait().exit_code == 0
    handle.delete()
    assert lab.output() == {"file": "result\n"}
    assert crashed or count > 10, "the steps of a creation are fewer than this test thinks"


@pytest.mark.parametrize("count", STEPS)
def test_delete_after_a_crash_of_create(lab: Lab, count: int) -> None:
    (lab.workdir / "data").write_text("data")
    crash(lab, "create", count)
    found = sojourn.list_tasks()
    assert len(found) == (count > 2), "nothing is made before the first step of the phase"
    for handle in found:
        handle.status()
        handle.delete()


@pytest.mark.parametrize("count", range(1, 11))
def test_delete_again_after_a_crash(lab: Lab, count: int) -> None:
    sojourn.create(task(lab)).wait()
    crash(lab, "delete", count)
    for handle in sojourn.list_tasks():
        handle.delete()
    assert lab.output() == {"file": "result\n"}
    with pytest.raises(NotFound):
        sojourn.get("tpi-crash")


@pytest.mark.parametrize("count", [1, 2])
def test_stop_again_after_a_crash(lab: Lab, count: int, tmp_path: Path) -> None:
    handle = sojourn.create(task(lab))
    crash(lab, "stop", count)
    handle.stop()
    handle.start()
    assert handle.wait().exit_code == 0
    handle.delete()


def test_gc_removes_what_a_crashed_creation_left_once_it_is_old(lab: Lab) -> None:
    crash(lab, "create", 5)
    assert sojourn.gc() == [], "somebody may be creating it just now"
    lab.kit.age(3600)
    ((handle, reason),) = sojourn.gc()
    assert "creation did not finish" in reason
    handle.delete()


@pytest.mark.parametrize("count", [3, 5, 7])
def test_a_crashed_creation_says_what_it_is(lab: Lab, count: int) -> None:
    crash(lab, "create", count)
    (handle,) = sojourn.list_tasks()
    assert "creation did not finish" in handle.status().reason
    with pytest.raises(NotFound, match="creation did not finish"):
        handle.wait()
    handle.delete()
