"""Processes: those that must end do, and no others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.agent.process import kill_with_group
from sojourn.host.orphans import lives as alive
from tests.support.waiting import until

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


# Forks and ends all the time: in a session of its own each time, or always in the same one.
_HOPPER = """
#include <fcntl.h>
#include <unistd.h>
int main(int count, char **words) {
    for (int chain = 0; chain < 1 && fork(); chain++);
    // Bounded, but by far more than it takes to give up on it. Not faster than this: until they are
    // chased, those that ended are zombies, and a system has few numbers.
    for (int hops = 0; hops < 3000 && access(words[1], F_OK); hops++) {
        usleep(2000);
        if (fork()) _exit(0);
        if (words[2][0] == 's') setsid();
    }
}
"""


def test_a_process_is_killed_with_those_of_its_group_that_nobody_has_seen() -> None:
    script = "sleep 300 & echo $!; sleep 300"
    with subprocess.Popen(
        ["bash", "-c", script], start_new_session=True, stdout=subprocess.PIPE
    ) as leader:
        assert leader.stdout
        unseen = int(leader.stdout.readline())
        kill_with_group(leader.pid)
    until(lambda: not alive(unseen))


_CHASING = """
import os, subprocess, sys
from sojourn.agent.process import adopt_orphans, below, kill_below

adopt_orphans()
subprocess.run(sys.argv[1:], start_new_session=True)
kill_below()
print(len(below(os.getpid())))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs Linux and a C compiler, cc"
)
@pytest.mark.parametrize("where", ["same", "own"])
def test_what_forks_and_ends_all_the_time_does_not_escape(tmp_path: Path, where: str) -> None:
    source, hopper, stop = tmp_path / "hopper.c", tmp_path / "hopper", tmp_path / "stop"
    source.write_text(_HOPPER)
    subprocess.run(["cc", "-O", "-w", "-o", hopper, source], check=True)
    setsid = "s" if where == "own" else "-"
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHASING, hopper, stop, setsid],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        stop.touch()  # should some have escaped after all
    assert done.stdout == "0\n"
