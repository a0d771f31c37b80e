"""Processes: those that must end do, and no others."""

from __future__ import annotations

import subprocess
import sys

_SPARING = """
import os, subprocess, sys
from sojourn.agent.process import adopt_orphans, below, kill_below

def zombies():
    table = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(os.getpid())],
                           capture_output=True, text=True).stdout
    return [int(row.split()[0]) for row in table.splitlines() if "Z" in row.split()[1]]

adopt_orphans()

# A fork that fails on a crowded machine is no kill.
spared = subprocess.Popen(
    ["bash", "-c", "while true; do /bin/true; test $? -ne 137 || { echo killed; exit 1; }; done"],
    stderr=subprocess.DEVNULL,
)
doomed = subprocess.Popen(["bash", "-c", "sleep 300 & sleep 300"])
for _ in range(20):
    kill_below(frozenset({spared.pid}))
assert spared.poll() is None
assert below(os.getpid(), frozenset({spared.pid})) == []
assert [pid for pid in zombies() if pid != spared.pid] == [], "they were not buried"
spared.kill()
spared.wait()
"""


def test_what_a_spared_process_starts_meanwhile_is_spared_too() -> None:
    # No timeout of its own: it reads all of /proc again and again, which takes a crowded machine
    # as long as it takes.
    done = subprocess.run(
        [sys.executable, "-c", _SPARING], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
